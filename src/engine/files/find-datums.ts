/** Finds the datums of a stage's inputs, in the file store or among the output files of an earlier stage. */
import type { Entry } from '../../files/file-store.ts'
import { type Datum, datumsOf, type Lister } from '../../files/inputs.ts'
import { pathIn } from '../../files/uri.ts'
import { type DatumInput, type FilesInput, type FilesPlan, filesInputsOf, type Position } from '../../kernel/datum.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { readInputsOfTasks } from '../../store/files/listings.ts'
import { storedFilesAfter } from '../../store/files/read-artifacts.ts'
import type { StageRow } from '../../store/jobs/jobs.ts'
import type { Context } from '../context.ts'

const datumsPerBatch = 1000

/** Yields batches of datums in a fixed order, starting after the position `after`. */
export async function* findDatums(
  context: Context,
  plan: FilesPlan,
  stages: readonly StageRow[],
  after: Position | null,
): AsyncGenerator<Datum[]> {
  const listerOf = (leaf: FilesInput) => listerFor(context, leaf, stages)
  for await (const batch of batches(datumsOf(plan.inputs!, listerOf, after ?? undefined))) {
    yield batch.map(({ inputs, position }) => ({
      inputs: inputs.map(input => withStage(plan, stages, input)),
      position,
    }))
  }
}

function listerFor({ sql, files }: Context, { from }: FilesInput, stages: readonly StageRow[]): Lister {
  if ('uri' in from) return { base: from.uri, list: (folder, ask) => files.list(folder, ask) }
  return stageFilesLister(sql, stageNamed(stages, from.stage))
}

const stageNamed = (stages: readonly StageRow[], name: string) =>
  stages.find(stage => stage.kind === 'work' && stage.name === name)!

/** A folder of an earlier stage's output is identified by the stage, because other files may be in the same folder. */
function withStage(plan: FilesPlan, stages: readonly StageRow[], input: DatumInput): DatumInput {
  if (!input.uri.endsWith('/')) return input
  const from = filesInputsOf(plan.inputs!).flatMap(({ name, from }) =>
    name === input.name && 'stage' in from ? [from.stage] : [],
  )
  const stage = from
    .map(name => stageNamed(stages, name))
    .find(({ plan: { files } }) => input.uri.startsWith(files!.outputs!))
  return stage === undefined ? input : { ...input, stageId: stage.id }
}

async function* batches(datums: AsyncIterable<Datum>): AsyncGenerator<Datum[]> {
  let batch: Datum[] = []
  for await (const datum of datums) {
    batch.push(datum)
    if (batch.length < datumsPerBatch) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

/** Lists a stage's output files as a folder. Other files in the same folder of the file store are not listed. */
function stageFilesLister(sql: Sql, stage: StageRow): Lister {
  const base = stage.plan.files?.outputs ?? ''
  return { base, list: (folder, ask = {}) => list(sql, stage.id, pathIn(base, folder) ?? '', ask) }
}

async function* list(
  sql: Sql,
  stageId: string,
  folder: string,
  { after: behind = '', deep = false }: { after?: string; deep?: boolean },
): AsyncGenerator<readonly Entry[]> {
  // If the last entry was a folder, everything in it has been listed.
  const after = folder + (behind.endsWith('/') && !deep ? `${behind.slice(0, -1)}0` : behind)
  let last = ''
  for await (const files of storedFilesAfter(sql, stageId, folder, after)) {
    const entries: Entry[] = []
    for (const { name, size, sha256 } of files) {
      const path = name.slice(folder.length)
      const inner = deep ? -1 : path.indexOf('/')
      if (inner < 0) entries.push({ path, ...(size !== null && { size }), ...(sha256 !== null && { version: sha256 }) })
      else if (last !== path.slice(0, inner + 1)) entries.push({ path: path.slice(0, inner + 1) })
      last = entries.at(-1)?.path ?? last
    }
    if (entries.length > 0) yield entries
  }
}

/**
 * Returns the datums for which the stage has no task. Datums are equal if all their inputs have the same names and
 * URIs.
 */
export async function withoutTasks(sql: Sql, stageId: string, datums: readonly Datum[]): Promise<Datum[]> {
  const known = await readInputsOfTasks(sql, stageId, rarestInputs(datums))
  const tasks = new Set(known.map(keyOf))
  return datums.filter(({ inputs }) => !tasks.has(keyOf(inputs)))
}

const keyOf = (inputs: readonly DatumInput[]) => JSON.stringify(inputs.map(({ name, uri }) => [name, uri]))

/** Returns one input per datum to look it up by: the rarest one, because some files may be inputs of every task. */
function rarestInputs(datums: readonly Datum[]): string[] {
  const shared = new Map<string, number>()
  for (const { uri } of datums.flatMap(({ inputs }) => inputs)) shared.set(uri, (shared.get(uri) ?? 0) + 1)
  const rarest = datums.flatMap(({ inputs }) => {
    const [first, ...rest] = inputs.map(({ uri }) => uri)
    if (first === undefined) return []
    return [rest.reduce((best, uri) => (shared.get(uri)! < shared.get(best)! ? uri : best), first)]
  })
  return [...new Set(rarest)]
}
