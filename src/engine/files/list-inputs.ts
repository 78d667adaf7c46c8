/**
 * Turns a stage's inputs into tasks when the stage opens: in batches of datums as they are found, each in a transaction
 * of its own. The position is written with each batch. After a crash, or if a listing is taken over from a slow
 * process, it continues after the last batch. If two processes list concurrently, the second finds that the position
 * has moved.
 */
import { isDeepStrictEqual } from 'node:util'
import { checkInputs, type Datum } from '../../files/inputs.ts'
import { type FilesPlan, type Position, payloadOf } from '../../kernel/datum.ts'
import { newId } from '../../kernel/id.ts'
import { isFinal } from '../../kernel/lifecycle.ts'
import { isWorthRetry, Problem } from '../../kernel/problem.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import type { Sql } from '../../store/driver/sql.ts'
import {
  endListing,
  extendListing,
  type Listing,
  type Reused,
  recordInputs,
  recordListingProgress,
  retryListingLater,
  skipReused,
  takeListing,
  wasListed,
} from '../../store/files/listings.ts'
import { readStages, type StageRow } from '../../store/jobs/jobs.ts'
import { insertStageTasks } from '../../store/jobs/new-job.ts'
import { checkedJson } from '../check.ts'
import type { Context } from '../context.ts'
import { advanceJob } from '../jobs/advance-job.ts'
import type { LockedJob } from '../jobs/locked-job.ts'
import { insertChecked } from '../tasks/payload-checks.ts'
import { findDatums, withoutTasks } from './find-datums.ts'
import { processAll } from './promote.ts'
import { findReusable } from './reuse.ts'

/** Number of attempts to reach a location before the stage fails. */
const maxTries = 6
/** The stage fails after this many processes have died while listing its inputs. */
const maxCrashes = 3
const stillListingSeconds = 15

/** Several stages at once, so that a long listing does not hold up a short one. */
const concurrentStages = 4

/** Lists the inputs of stages until there are none left to list. */
export async function listInputs(context: Context, everySeconds = stillListingSeconds): Promise<{ listed: number }> {
  let listed = 0
  const take = () => takeListing(context.sql)
  await processAll(concurrentStages, take, async taken => {
    await listOne(context, taken, everySeconds)
    listed += 1
  })
  return { listed }
}

async function listOne(context: Context, listing: Listing, everySeconds: number): Promise<void> {
  const { stageId, tries } = listing
  if (listing.error === null && tries > maxCrashes) return failListing(context, listing, crashedMessage)
  // A listing may take long without finding anything.
  const beat = setInterval(() => void extendListing(context.sql, stageId).catch(() => {}), everySeconds * 1000)
  try {
    await listStage(context, listing)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    context.log('inputs.failed', { stageId, jobId: listing.jobId, tries, error: message })
    const isHopeless = error instanceof Problem && !isWorthRetry(error)
    if (isHopeless || tries >= maxTries) await failListing(context, listing, message)
    else await retryListingLater(context.sql, stageId, message, 2 ** tries)
  } finally {
    clearInterval(beat)
  }
}

const crashedMessage = `Its inputs could not be listed: ${maxCrashes} processes died while listing them.`

async function listStage(context: Context, { stageId, jobId }: Listing): Promise<void> {
  const stages = await readStages(context.sql, jobId)
  const stage = stages.find(({ id }) => id === stageId)
  const plan = stage?.plan.files
  if (stage === undefined || !plan?.inputs) return endListing(context.sql, stageId)
  checkInputs(plan.inputs)
  const wasListedBefore = await wasListed(context.sql, stageId)
  let at = (stage.listAt ?? null) as Position | null
  for await (const datums of findDatums(context, plan, stages, at)) {
    // No other process adds tasks for this batch: it would have continued from the same position, and only one can.
    const fresh = wasListedBefore ? await withoutTasks(context.sql, stageId, datums) : datums
    const next = datums.at(-1)!.position
    if (!(await addDatums(context, stage, plan, fresh, { at, next }))) return
    at = next
    await recordListingProgress(context.sql, stageId)
  }
  await advanceJob(context, jobId, 'engine', async (locked, tx) => {
    const open = stageStillAt(locked, stage, at)
    if (open !== undefined) locked.setStage(open, { listing: 'done' })
    if (open !== undefined || hasEndedListing(locked, stageId)) await endListing(tx, stageId)
  })
}

const heartbeatSeconds = 10

/** Runs `work` if the last run was longer ago than this. */
function every(seconds: number, work: () => Promise<void>): () => Promise<void> {
  let doneAt = performance.now()
  return async () => {
    if (performance.now() - doneAt < seconds * 1000) return
    doneAt = performance.now()
    await work()
  }
}

/** Returns false if another process has continued from here, or if the stage takes no more tasks. */
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
  const keepListing = every(heartbeatSeconds, () => recordListingProgress(context.sql, stageId))
  const isToReuse = plan.reuse && made.length > 0
  const reuse = isToReuse ? await findReusable(context, jobId, plan, made, keepListing) : { digests: [], reused: [] }
  return advanceJob(context, jobId, 'engine', async (locked, tx) => {
    const stage = stageStillAt(locked, listed, at)
    if (stage === undefined) {
      if (hasEndedListing(locked, stageId)) await endListing(tx, stageId)
      return false
    }
    await insertDatumTasks(context, tx, locked, stage, made, reuse.reused)
    await recordInputs(
      tx,
      made.flatMap(({ id, inputs }) => inputs.map(({ uri }) => ({ taskId: id, uri }))),
      reuse.digests,
    )
    locked.setStage(stage, { listAt: next })
    return true
  })
}

async function insertDatumTasks(
  context: Context,
  tx: Sql,
  locked: LockedJob,
  stage: StageRow,
  made: readonly { id: string; payload: string }[],
  reused: readonly Reused[],
): Promise<void> {
  const reusedIds = new Set(reused.map(({ taskId }) => taskId))
  const type = stage.plan.task!
  const tasks = (passedOver: boolean) =>
    made.flatMap(({ id, payload }) => (reusedIds.has(id) === passedOver ? [{ id, type, payload }] : []))
  const isOpen = stage.state === 'pending' || stage.state === 'running'
  const of = { stageId: stage.id, settings: stage.plan.settings }
  const fresh = tasks(false)
  const state = isOpen ? 'queued' : 'blocked'
  const payloads = { tasks: fresh, at: (index: number) => `stages.${stage.name}.inputs[${index}]` }
  await insertChecked(context.types.schemas, tx, payloads, versions =>
    insertStageTasks(tx, locked.job, [{ ...of, state, tasks: fresh }], 'engine', versions),
  )
  const skipped = [{ ...of, state: 'blocked' as const, tasks: tasks(true) }]
  await insertStageTasks(tx, locked.job, skipped, 'engine', 'unchecked')
  const blocked = stage.blocked + reused.length + (isOpen ? 0 : fresh.length)
  locked.setStage(stage, { total: stage.total + made.length, blocked })
  locked.queuesToWake.add(stage.plan.queue ?? type)
  if (reused.length === 0) return
  await locked.write(tx)
  await skipReused(tx, stage, reused)
  await locked.recount(tx)
}

/** Returns the stage if it still takes tasks, is in the same round, and no other process has continued from here. */
function stageStillAt(locked: LockedJob, { id: stageId, round }: StageRow, at: unknown): StageRow | undefined {
  const stage = locked.stages.find(({ id }) => id === stageId)
  if (stage === undefined || stage.round !== round || hasEndedListing(locked, stageId)) return undefined
  return isDeepStrictEqual(stage.listAt ?? null, at) ? stage : undefined
}

function hasEndedListing(locked: LockedJob, stageId: string): boolean {
  const stage = locked.stages.find(({ id }) => id === stageId)
  return stage?.listing !== 'under way' || stage.endsAs !== null || isFinal(stageLifecycle, stage.state)
}

async function failListing(context: Context, { stageId, jobId }: Listing, message: string): Promise<void> {
  await advanceJob(context, jobId, 'engine', async (locked, tx) => {
    if (!hasEndedListing(locked, stageId)) {
      const stage = locked.stages.find(({ id }) => id === stageId)!
      locked.decideStageEnd(stage, 'failed', 'inputs_error', { error: { message } })
    }
    await endListing(tx, stageId)
  })
}
