/** What a task has to do with files: its command, its inputs, and what it has put out. */

import type { DatumInput } from '../kernel/datum.ts'
import type { PawlApi } from '../protocol/api.ts'
import type { ArtifactView } from '../protocol/files/artifacts.ts'
import type { TaskView } from '../protocol/tasks/tasks.ts'
import { isObject } from '../schema/check.ts'
import { inputsIn } from './datums.ts'
import { type Line, styled } from './line.ts'
import { stateOf } from './states.ts'
import { type Column, table } from './table.ts'

export interface TaskFiles {
  readonly inputs: readonly DatumInput[]
  /** The first of them. */
  readonly artifacts: readonly ArtifactView[]
  readonly moreArtifacts: boolean
}

const shown = 100

/** Of a task without files undefined, and nothing is asked. */
export async function filesOf(api: PawlApi, { id, payload }: TaskView): Promise<TaskFiles | undefined> {
  const inputs = inputsIn(payload)
  if (inputs.length === 0 && commandOf(payload) === undefined) return undefined
  const { items, next } = await api.taskArtifacts(id, { limit: shown })
  return { inputs, artifacts: items, moreArtifacts: next !== null }
}

/** What a command task runs, as it would be typed. */
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
  { head: 'INPUT', of: ({ name, path }) => `${name}/${path}`, least: 12 },
  { head: 'SIZE', of: ({ size }) => bytes(size ?? null), align: 'right' },
  { head: 'URI', of: ({ uri }) => uri, cut: 'start', spare: true },
]

const artifactColumns: readonly Column<ArtifactView>[] = [
  { head: 'FILE', of: ({ name }) => name, least: 12 },
  { head: 'STATE', of: ({ state }) => stateOf('artifact', state), least: 9 },
  { head: 'SIZE', of: ({ size }) => bytes(size), align: 'right' },
  { head: 'URI', of: ({ uri }) => uri, cut: 'start', spare: true },
  { head: 'TASK', of: ({ taskId }) => taskId, cut: 'start', least: 9, spare: true },
  { head: 'ERROR', of: ({ error }) => error ?? '', spare: true },
]

const attempt: Column<ArtifactView> = {
  head: 'ATTEMPT',
  of: ({ epoch }) => String(epoch),
  align: 'right',
  spare: true,
}

/** A column for errors only where there are any. */
export function artifactTable(
  items: readonly ArtifactView[],
  width: number,
  columns: readonly Column<ArtifactView>[] = artifactColumns,
): Line[] {
  const hasErrors = items.some(({ error }) => error !== null)
  const shown = columns.filter(({ head }) => head !== 'ERROR' || hasErrors)
  return table(items, shown, width)
}

/** A task need not be told which task it is. */
const outputColumns = [...artifactColumns.filter(({ head }) => head !== 'TASK'), attempt]

export function fileLines(files: TaskFiles | undefined, width: number): Line[] {
  if (files === undefined) return []
  const { inputs, artifacts, moreArtifacts } = files
  return [
    ...(inputs.length === 0 ? [] : ['', ...table(inputs, inputColumns, width)]),
    ...(artifacts.length === 0 ? [] : ['', ...artifactTable(artifacts, width, outputColumns)]),
    ...(moreArtifacts ? [styled('dim', '… and more: pawl job outputs')] : []),
  ]
}

const units = ['kB', 'MB', 'GB', 'TB', 'PB'] as const

/** A size as people read it: `712 B`, `1.5 kB`, `340 MB`. */
function bytes(size: number | null): string {
  if (size === null) return ''
  if (size < 1000) return `${size} B`
  const power = Math.min(units.length, Math.floor(Math.log10(size) / 3))
  const shown = size / 1000 ** power
  return `${shown < 10 ? shown.toFixed(1) : Math.round(shown)} ${units[power - 1]}`
}
