/** The command, inputs and outputs of a task, and where its worker runs. */

import type { DatumInput } from '../kernel/datum.ts'
import type { ArtifactView } from '../protocol/files/artifacts.ts'
import type { PawlApi } from '../protocol/operations.ts'
import type { TaskView } from '../protocol/tasks/tasks.ts'
import { placeOf } from '../runners/names.ts'
import { isObject } from '../schema/check.ts'
import { styledState } from './states.ts'
import { type Line, styled } from './styled-line.ts'
import { type Column, table } from './table.ts'

export interface TaskFiles {
  readonly inputs: readonly DatumInput[]
  /** The first ones, at most `shown`. */
  readonly artifacts: readonly ArtifactView[]
  readonly moreArtifacts: boolean
}

const shown = 100

/** Undefined, without a request, for a task without files. */
export async function filesOf(api: PawlApi, { id, payload }: TaskView): Promise<TaskFiles | undefined> {
  const inputs = inputsIn(payload)
  if (inputs.length === 0 && commandOf(payload) === undefined) return undefined
  const { items, next } = await api.taskArtifacts(id, { limit: shown })
  return { inputs, artifacts: items, moreArtifacts: next !== null }
}

/** The command of a command task, quoted for a shell. */
export function commandOf(payload: unknown): { command: string; outputs: string | null } | undefined {
  const run = isObject(payload) ? payload.run : undefined
  if (!isObject(run) || !Array.isArray(run.command)) return undefined
  const outputs = (payload as Record<string, unknown>).outputs
  const command = run.command.map(word => quoted(String(word))).join(' ')
  return { command, outputs: typeof outputs === 'string' ? outputs : null }
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}

const inputColumns: readonly Column<DatumInput>[] = [
  { header: 'INPUT', value: ({ name, path }) => `${name}/${path}`, minWidth: 12 },
  { header: 'SIZE', value: ({ size }) => formatBytes(size ?? null), align: 'right' },
  { header: 'URI', value: ({ uri }) => uri, cut: 'start', optional: true },
]

const artifactColumns: readonly Column<ArtifactView>[] = [
  { header: 'FILE', value: ({ name }) => name, minWidth: 12 },
  { header: 'STATE', value: ({ state }) => styledState('artifact', state), minWidth: 9 },
  { header: 'SIZE', value: ({ size }) => formatBytes(size), align: 'right' },
  { header: 'URI', value: ({ uri }) => uri, cut: 'start', optional: true },
  { header: 'TASK', value: ({ taskId }) => taskId, cut: 'start', minWidth: 9, optional: true },
  { header: 'ERROR', value: ({ error }) => error ?? '', optional: true },
]

const attempt: Column<ArtifactView> = {
  header: 'ATTEMPT',
  value: ({ epoch }) => String(epoch),
  align: 'right',
  optional: true,
}

/** Has a column for errors only if there are any. */
export function artifactTable(
  items: readonly ArtifactView[],
  width: number,
  columns: readonly Column<ArtifactView>[] = artifactColumns,
): Line[] {
  const hasErrors = items.some(({ error }) => error !== null)
  const shown = columns.filter(({ header }) => header !== 'ERROR' || hasErrors)
  return table(items, shown, width)
}

const outputColumns = [...artifactColumns.filter(({ header }) => header !== 'TASK'), attempt]

export function fileLines(files: TaskFiles | undefined, width: number): Line[] {
  if (files === undefined) return []
  const { inputs, artifacts, moreArtifacts } = files
  const jobId = artifacts[0]?.jobId ?? null
  return [
    ...(inputs.length === 0 ? [] : ['', ...table(inputs, inputColumns, width)]),
    ...(artifacts.length === 0 ? [] : ['', ...artifactTable(artifacts, width, outputColumns)]),
    ...(moreArtifacts ? [styled('dim', `… and more${jobId === null ? '' : `: pawl job outputs ${jobId}`}`)] : []),
  ]
}

const units = ['kB', 'MB', 'GB', 'TB', 'PB'] as const

/** `712 B`, `1.5 kB`, `340 MB`. */
function formatBytes(size: number | null): string {
  if (size === null) return ''
  if (size < 1000) return `${size} B`
  const power = Math.min(units.length, Math.floor(Math.log10(size) / 3))
  const shown = size / 1000 ** power
  return `${shown < 10 ? shown.toFixed(1) : Math.round(shown)} ${units[power - 1]}`
}

export interface TaskWithWorker extends TaskView {
  /** The names and paths of its inputs; null if it has none. */
  readonly datum: string | null
  /** The current or last worker. */
  readonly worker: string | null
  /** Set if the worker runs in Kubernetes. */
  readonly node: string | null
  readonly pod: string | null
  /** The number of attempts, including the current one. */
  readonly attempts: number
}

export async function withWorkers(api: PawlApi, tasks: readonly TaskView[]): Promise<TaskWithWorker[]> {
  return Promise.all(
    tasks.map(async task => {
      const attempts = await api.attempts(task.id)
      const worker = task.owner ?? attempts.at(-1)?.worker ?? null
      const pod = worker === null ? undefined : placeOf(worker)
      const where = { worker, node: pod?.node ?? null, pod: pod?.name ?? null }
      return { ...task, datum: datumOf(task.payload), ...where, attempts: attempts.length }
    }),
  )
}

/** The input files of a task. Payloads of other tasks may have a different `inputs`, which is ignored. */
function inputsIn(payload: unknown): readonly DatumInput[] {
  const inputs = isObject(payload) ? payload.inputs : undefined
  return Array.isArray(inputs) && inputs.every(isInput) ? inputs : []
}

function isInput(value: unknown): value is DatumInput {
  return isObject(value) && [value.name, value.uri, value.path].every(text => typeof text === 'string')
}

/** `doc/a.pdf`, or `doc/a.pdf × model/`. */
function datumOf(payload: unknown): string | null {
  const inputs = inputsIn(payload)
  return inputs.length === 0 ? null : inputs.map(({ name, path }) => `${name}/${path}`).join(' × ')
}
