/** Claims tasks, and waits for tasks if there are none. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClaimsRequest } from '../../protocol/tasks/sync.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { claimTasks, dueByQueue, type LeaseTerms, nextDueSeconds } from '../../store/tasks/claim.ts'
import type { Claimed } from '../../store/tasks/claimed.ts'
import { openSession, readHeldTasks, readLastClaim } from '../../store/tasks/sessions.ts'
import type { Context } from '../context.ts'
import { type Idempotency, once } from '../once.ts'
import { retryConflicts } from '../retry.ts'
import { noClaimHints } from './claim-hints.ts'

const firstPauseSeconds = 0.001
const maxExtraSeconds = 2

export interface ClaimOptions {
  /**
   * The other part of the same sync, whose reports may free a slot. The claim does not wait for tasks before this has
   * ended, and gives up if it fails: the sync has failed then, and its worker would never learn about claimed tasks.
   */
  readonly meanwhile?: Promise<unknown> | null
  readonly signal?: AbortSignal | undefined
  /** Returns no tasks only if none is due. Tasks locked by other claims may still become free. */
  readonly untilEmpty?: boolean
  /** The idempotency key of the claim. */
  readonly key?: Idempotency
  /** If the session still holds tasks of its last claim, these are returned instead of new ones. */
  readonly unlessHolding?: boolean
}

/** Claims tasks. If there are none, waits for a notification, for a task to come due, or for the timeout. */
export async function claimOrWait(
  context: Context,
  request: ClaimsRequest,
  { meanwhile, signal, untilEmpty = false, key = {}, unlessHolding = false }: ClaimOptions,
): Promise<{ tasks: Claimed[]; at: number }> {
  const queues = request.queues ?? []
  const claim = unlessHolding ? claimUnlessHolding : claimOnce
  const began = performance.now()
  const until = began + (request.waitSeconds ?? 0) * 1000
  const mayStillWin = async () =>
    untilEmpty && performance.now() - began < maxExtraSeconds * 1000 && (await isDue(context.sql, queues))
  let pauseSeconds = firstPauseSeconds
  let claimContext = context
  for (;;) {
    const at = performance.now()
    const notificationsSeen = context.wake.notificationCount()
    const tasks = await tryClaim(claimContext, request, key, claim)
    const leftSeconds = (until - performance.now()) / 1000
    // The claim was filled, so there may be more tasks: wake other waiters.
    if (tasks?.length === request.claim) context.wake.wakeSome(queues)
    if (tasks !== undefined || signal?.aborted) return { tasks: tasks ?? [], at }
    if (leftSeconds <= 0) {
      if (!(await mayStillWin())) return { tasks: [], at }
      // Tasks that other claims have put back may be below the hints.
      claimContext = { ...context, claimHints: noClaimHints }
      await sleep(pauseSeconds * 1000)
      pauseSeconds *= 2
      continue
    }
    await meanwhile
    const due = await nextDueSeconds(context.sql, queues)
    // Another claim has locked the lane at this moment, or a report of this sync has just freed a slot.
    const isNear = due === 0
    if (due !== null && !isNear) context.wake.expectDueIn(due)
    await context.wake.wait(
      queues,
      notificationsSeen,
      isNear ? Math.min(leftSeconds, pauseSeconds) : leftSeconds,
      signal,
    )
    pauseSeconds = isNear ? pauseSeconds * 2 : firstPauseSeconds
    if (signal?.aborted) return { tasks: [], at }
  }
}

/**
 * Tasks enqueued together share a row in the queue. Each claim of one of them locks the row for a moment, and
 * concurrent claims then find nothing.
 */
async function isDue(sql: Sql, queues: readonly string[]): Promise<boolean> {
  return (await dueByQueue(sql, queues)).some(({ seconds }) => seconds <= 0)
}

type Claim = typeof claimOnce

/** Returns undefined if there is nothing to claim yet. */
async function tryClaim(
  context: Context,
  request: ClaimsRequest,
  key: Idempotency,
  claim: Claim,
): Promise<Claimed[] | undefined> {
  const countConflict = () => {
    context.metrics.claimConflicts += 1
  }
  if (key.idempotencyKey !== undefined)
    return retryConflicts(() => tryClaimOnce(context, request, key, claim), countConflict)
  return retryConflicts(() => claim(context, context.sql, request, key.holder), countConflict)
}

/**
 * The key is stored in the transaction of the claim, together with the leases. A repeated request returns the leases
 * that are still held, in their current state, because the remaining lease is shorter by then. A claim that wins
 * nothing leaves the key free, because it will be tried again. A concurrent request waits for the first one's
 * transaction.
 */
async function tryClaimOnce(
  context: Context,
  request: ClaimsRequest,
  key: Idempotency,
  claim: Claim,
): Promise<Claimed[] | undefined> {
  const nothing = new Error('nothing was won')
  let won: Claimed[] | undefined
  try {
    const leases = await once(context.sql, key, ['claims', request], async tx => {
      won = await claim(context, tx, request, key.holder)
      if (won === undefined) throw nothing
      return won.map(({ id, epoch }) => ({ id, epoch }))
    })
    return won ?? (await readHeldTasks(context.sql, leases))
  } catch (error) {
    if (error !== nothing) throw error
    return undefined
  }
}

/**
 * Returns undefined if there is nothing to claim yet. A repeated sync returns what is left of its claim, even if that
 * is nothing, so the worker continues with its next sync. If it claimed again, a late duplicate would claim tasks for a
 * worker that already has its answer.
 */
async function claimOnce(
  context: Context,
  sql: Sql,
  request: ClaimsRequest,
  holder?: string,
): Promise<Claimed[] | undefined> {
  const { session = null, syncId = null, queues = [], claim: limit = 0, worker } = request
  const hints = context.claimHints.current()
  const began = performance.now()
  const terms = leaseTermsOf(request, holder)
  const heartbeatSeconds = request.defaultHeartbeatSeconds
  const claimRequest = { queues, limit, worker, session, syncId, terms, heartbeatSeconds, hints }
  const { tasks, places, isOpen, isRepeated, isBeaten } = await claimTasks(sql, claimRequest)
  if (!isOpen) {
    // The first claim of the session, or the session was idle for so long that it was removed.
    await openSession(sql, session!, { worker, queues, slots: request.slots ?? null })
    return claimOnce(context, sql, request, holder)
  }
  context.claimHints.learn(places, hints.length > 0, performance.now() - began)
  if (isRepeated) return readLastClaim(sql, session!, syncId)
  if (isBeaten) context.metrics.claimConflicts += 1
  return tasks.length > 0 ? tasks : undefined
}

function leaseTermsOf(
  { leaseSeconds, heartbeatSeconds }: ClaimsRequest,
  holder: string | undefined,
): LeaseTerms | null {
  if (leaseSeconds === undefined && heartbeatSeconds === undefined && holder === undefined) return null
  return {
    ...(holder !== undefined && { key: holder }),
    ...(leaseSeconds !== undefined && { leaseSeconds }),
    ...(heartbeatSeconds !== undefined && { heartbeatSeconds }),
  }
}

/**
 * A concurrent claim waits for the session's row and then sees the tasks of the first one. A single statement could
 * not, because it sees the state at its start.
 */
function claimUnlessHolding(
  context: Context,
  sql: Sql,
  request: ClaimsRequest,
  holder?: string,
): Promise<Claimed[] | undefined> {
  const { session, queues = [], worker } = request
  return sql.begin(async tx => {
    await openSession(tx, session!, { worker, queues, slots: request.slots ?? null })
    const holding = await readLastClaim(tx, session!)
    return holding.length > 0 ? holding : claimOnce(context, tx, request, holder)
  })
}
