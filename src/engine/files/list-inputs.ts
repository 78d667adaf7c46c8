/**
 * Makes tasks of a stage's inputs, when it opens: datum by datum as they are found, in batches that are each a
 * transaction. How far it has come is written with each batch, so whoever goes on, after a crash or instead of somebody
 * who is slow, begins behind the last one; and of two who do it at once, the second finds the place taken.
 */
import { isDeepStrictEqual } from 'node:util'
import { checkInputs } from '../../files/check-inputs.ts'
import { type Datum, datumsOf, type Lister } from '../../files/inputs.ts'
import {
  type DatumInput,
  type FilesInput,
  type FilesPlan,
  leavesOf,
  type Position,
  payloadOf,
} from '../../kernel/datum.ts'
import { newId } from '../../kernel/id.ts'
import { isFinal } from '../../kernel/lifecycle.ts'
import { isWorthRetry, Problem } from '../../kernel/problem.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import type { Sql } from '../../store/driver/sql.ts'
import {
  endListing,
  extendListing,
  type Listing,
  readInputsOfTasks,
  recordInputs,
  recordListingProgress,
  retryListingLater,
  takeListing,
  wasListed,
} from '../../store/files/listings.ts'
import { readStages, type StageRow } from '../../store/jobs/jobs.ts'
import { insertStageTasks } from '../../store/jobs/stage-tasks.ts'
import { checkedJson } from '../check.ts'
import type { Context } from '../context.ts'
import { driveJob } from '../jobs/drive.ts'
import type { JobBook } from '../jobs/locked-job.ts'
import { workOff } from '../work-off.ts'
import { ledgerLister } from './ledger-lister.ts'
import { type Reused, reusable, skipReused } from './reuse.ts'

const datumsPerBatch = 1000
/** A place that cannot be reached is asked so often before the stage fails. */
const mostTries = 6
/** After this many processes have died while they listed the inputs of a stage, it fails. */
const mostDeaths = 3
const stillListingSeconds = 15

/** So many stages at once: a long listing must not hold up a short one. */
const stagesAtOnce = 4

/** Finds inputs until there are none left to find. */
export async function listInputs(context: Context, everySeconds = stillListingSeconds): Promise<{ listed: number }> {
  let listed = 0
  const take = () => takeListing(context.sql)
  await workOff(stagesAtOnce, take, async taken => {
    await listOne(context, taken, everySeconds)
    listed += 1
  })
  return { listed }
}

async function listOne(context: Context, listing: Listing, everySeconds: number): Promise<void> {
  const { stageId, tries } = listing
  if (listing.error === null && tries > mostDeaths) return failListing(context, listing, diedOverIt)
  // A listing may go on for long without finding anything.
  const beat = setInterval(() => void extendListing(context.sql, stageId).catch(() => {}), everySeconds * 1000)
  try {
    await listStage(context, listing)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    context.log('inputs.failed', { stageId, jobId: listing.jobId, tries, error: message })
    const isHopeless = error instanceof Problem && !isWorthRetry(error)
    if (isHopeless || tries >= mostTries) await failListing(context, listing, message)
    else await retryListingLater(context.sql, stageId, message, 2 ** tries)
  } finally {
    clearInterval(beat)
  }
}

const diedOverIt = `Its inputs could not be found: ${mostDeaths} processes ended while they looked for them.`

async function listStage(context: Context, { stageId, jobId }: Listing): Promise<void> {
  const stages = await readStages(context.sql, jobId)
  const stage = stages.find(({ id }) => id === stageId)
  const plan = stage?.plan.files
  if (stage === undefined || !plan?.inputs) return endListing(context.sql, stageId)
  checkInputs(plan.inputs)
  const listerOf = (leaf: FilesInput) => listerFor(context, leaf, stages)
  const isAgain = await wasListed(context.sql, stageId)
  let at = (stage.listAt ?? null) as Position | null
  for await (const datums of batches(datumsOf(plan.inputs, listerOf, at ?? undefined))) {
    const named = datums.map(({ inputs, position }) => ({
      inputs: inputs.map(input => byStage(plan, stages, input)),
      position,
    }))
    // Nobody else makes tasks of this batch: he who would has gone on from the same place, and only one of us can.
    const fresh = isAgain ? await unlisted(context.sql, stageId, named) : named
    const next = datums.at(-1)!.position
    if (!(await addDatums(context, stage, plan, fresh, { at, next }))) return
    at = next
    await recordListingProgress(context.sql, stageId)
  }
  await driveJob(context, jobId, 'engine', async (book, tx) => {
    const open = openAt(book, stage, at)
    if (open !== undefined) book.setStage(open, { listing: 'done' })
    if (open !== undefined || isOver(book, stageId)) await endListing(tx, stageId)
  })
}

function listerFor({ sql, files }: Context, { from }: FilesInput, stages: readonly StageRow[]): Lister {
  if ('uri' in from) return { base: from.uri, list: (folder, ask) => files.list(folder, ask) }
  return ledgerLister(sql, stageNamed(stages, from.stage))
}

const stageNamed = (stages: readonly StageRow[], name: string) =>
  stages.find(stage => stage.kind === 'work' && stage.name === name)!

/** A folder of an earlier stage's files is told by the stage: what else lies in that folder is not meant. */
function byStage(plan: FilesPlan, stages: readonly StageRow[], input: DatumInput): DatumInput {
  if (!input.uri.endsWith('/')) return input
  const from = leavesOf(plan.inputs!).flatMap(({ name, from }) =>
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

const keepOnSeconds = 10

/** Does it when it was last done so long ago. */
function every(seconds: number, work: () => Promise<void>): () => Promise<void> {
  let doneAt = performance.now()
  return async () => {
    if (performance.now() - doneAt < seconds * 1000) return
    doneAt = performance.now()
    await work()
  }
}

/** False: somebody else has gone on from here, or the stage is not to have more. */
async function addDatums(
  context: Context,
  listed: StageRow,
  plan: FilesPlan,
  datums: readonly Datum[],
  { at, next }: { at: unknown; next: Position },
): Promise<boolean> {
  const { id: stageId, jobId, name } = listed
  const made = datums.map(({ inputs }, index) => {
    const payload = payloadOf(plan, inputs)
    const where = `stages.${name}.inputs[${index}]`
    return { id: newId(), inputs, payload: checkedJson(payload, context.maxPayloadBytes, where) }
  })
  const goOn = every(keepOnSeconds, () => recordListingProgress(context.sql, stageId))
  const isToReuse = plan.reuse && made.length > 0
  const reuse = isToReuse ? await reusable(context, jobId, plan, made, goOn) : { digests: [], reused: [] }
  return driveJob(context, jobId, 'engine', async (book, tx) => {
    const stage = openAt(book, listed, at)
    if (stage === undefined) {
      if (isOver(book, stageId)) await endListing(tx, stageId)
      return false
    }
    await write(tx, book, stage, made, reuse.reused)
    await recordInputs(
      tx,
      made.flatMap(({ id, inputs }) => inputs.map(({ uri }) => ({ taskId: id, uri }))),
      reuse.digests,
    )
    book.setStage(stage, { listAt: next })
    return true
  })
}

async function write(
  tx: Sql,
  book: JobBook,
  stage: StageRow,
  made: readonly { id: string; payload: string }[],
  reused: readonly Reused[],
): Promise<void> {
  const again = new Set(reused.map(({ taskId }) => taskId))
  const type = stage.plan.task!
  const tasks = (passedOver: boolean) =>
    made.flatMap(({ id, payload }) => (again.has(id) === passedOver ? [{ id, type, payload }] : []))
  const isOpen = stage.state === 'pending' || stage.state === 'running'
  const of = { stageId: stage.id, settings: stage.plan.settings }
  const fresh = tasks(false)
  await insertStageTasks(tx, book.job, [{ ...of, state: isOpen ? 'queued' : 'blocked', tasks: fresh }], 'engine')
  await insertStageTasks(tx, book.job, [{ ...of, state: 'blocked', tasks: tasks(true) }], 'engine')
  const blocked = stage.blocked + reused.length + (isOpen ? 0 : fresh.length)
  book.setStage(stage, { total: stage.total + made.length, blocked })
  book.told.add(stage.plan.queue ?? type)
  if (reused.length === 0) return
  await book.write(tx)
  await skipReused(tx, stage, reused)
  await book.recount(tx)
}

/** The stage, if it still takes tasks and nobody has gone on from here, nor begun anew in a later round. */
function openAt(book: JobBook, { id: stageId, round }: StageRow, at: unknown): StageRow | undefined {
  const stage = book.stages.find(({ id }) => id === stageId)
  if (stage === undefined || stage.round !== round || isOver(book, stageId)) return undefined
  return isDeepStrictEqual(stage.listAt ?? null, at) ? stage : undefined
}

function isOver(book: JobBook, stageId: string): boolean {
  const stage = book.stages.find(({ id }) => id === stageId)
  return stage?.listing !== 'under way' || stage.endsAs !== null || isFinal(stageLifecycle, stage.state)
}

async function failListing(context: Context, { stageId, jobId }: Listing, message: string): Promise<void> {
  await driveJob(context, jobId, 'engine', async (book, tx) => {
    if (!isOver(book, stageId)) {
      const stage = book.stages.find(({ id }) => id === stageId)!
      book.intendStage(stage, 'failed', 'inputs_error', { error: { message } })
    }
    await endListing(tx, stageId)
  })
}

/** Datums that no task of the stage has. Two are the same if all their inputs are, by name and place. */
async function unlisted(sql: Sql, stageId: string, datums: readonly Datum[]): Promise<Datum[]> {
  const known = await readInputsOfTasks(sql, stageId, telling(datums))
  const tasks = new Set(known.map(keyOf))
  return datums.filter(({ inputs }) => !tasks.has(keyOf(inputs)))
}

const keyOf = (inputs: readonly DatumInput[]) => JSON.stringify(inputs.map(({ name, uri }) => [name, uri]))

/** One input of each datum to look it up by: the one that fewest share, for all tasks may have been given some file. */
function telling(datums: readonly Datum[]): string[] {
  const shared = new Map<string, number>()
  for (const { uri } of datums.flatMap(({ inputs }) => inputs)) shared.set(uri, (shared.get(uri) ?? 0) + 1)
  const told = datums.flatMap(({ inputs }) => {
    const [first, ...rest] = inputs.map(({ uri }) => uri)
    if (first === undefined) return []
    return [rest.reduce((best, uri) => (shared.get(uri)! < shared.get(best)! ? uri : best), first)]
  })
  return [...new Set(told)]
}
