/** Claims tasks, and waits for tasks if there are none. */
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { idOfHash } from '../../kernel/id.ts'
import type { ClaimsRequest } from '../../protocol/tasks/sync.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { dueByQueue, nextDueSeconds } from '../../store/tasks/due.ts'
import { findLastClaim, openSession, readHeldTasks } from '../../store/tasks/sessions.ts'
import type { Context } from '../context.ts'
import { once, type UnitCall } from '../unit-of-work.ts'
import { noClaimHints } from './claim-hints.ts'
import {
  type AskedClaim,
  claimOnce,
  claimTogether,
  nothingWon,
  retryClaim,
  type Won,
  wonEarlier,
} from './merge-claims.ts'

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
  readonly key?: UnitCall
  /** If the session still holds tasks of its last claim, these are returned instead of new ones. */
  readonly unlessHolding?: boolean
  /** The claim also starts its tasks. */
  readonly starts?: boolean
}

/**
 * A session belongs to the key that uses it, so a key that knows the session of another cannot repeat its claims, which
 * may be in queues that the key does not include. The same id under another key is another session.
 */
export function withOwnSession<Request extends ClaimsRequest>(request: Request, holder = ''): Request {
  if (request.session === undefined || holder === '') return request
  const hash = createHash('sha256').update(`${holder} ${request.session.toLowerCase()}`).digest('hex')
  return { ...request, session: idOfHash(hash) }
}

/** Claims tasks. If there are none, waits for a notification, for a task to come due, or for the timeout. */
export async function claimOrWait(
  context: Context,
  request: ClaimsRequest,
  options: ClaimOptions,
): Promise<Won & { at: number }> {
  const { meanwhile, signal, untilEmpty = false } = options
  const queues = request.queues ?? []
  const began = performance.now()
  const until = began + (request.waitSeconds ?? 0) * 1000
  const mayStillWin = async () =>
    untilEmpty && performance.now() - began < maxExtraSeconds * 1000 && (await isDue(context.sql, queues))
  let pauseSeconds = firstPauseSeconds
  let claimContext = context
  for (;;) {
    const at = performance.now()
    const notificationsSeen = context.wake.notificationCount()
    const won = await tryClaim(claimContext, request, options)
    const leftSeconds = (until - performance.now()) / 1000
    // The claim was filled or cut, so there may be more tasks: wake other waiters.
    if (won?.tasks.length === request.claim || won?.isCut) context.wake.wakeSome(queues)
    if (won !== undefined || signal?.aborted) return { ...(won ?? nothingWon), at }
    if (leftSeconds <= 0) {
      if (!(await mayStillWin())) return { ...nothingWon, at }
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
    if (signal?.aborted) return { ...nothingWon, at }
  }
}

/**
 * Tasks enqueued together share a row in the queue. Each claim of one of them locks the row for a moment, and
 * concurrent claims then find nothing.
 */
async function isDue(sql: Sql, queues: readonly string[]): Promise<boolean> {
  return (await dueByQueue(sql, queues)).some(({ seconds }) => seconds <= 0)
}

/** Returns undefined if there is nothing to claim yet. */
function tryClaim(
  context: Context,
  request: ClaimsRequest,
  { key = {}, unlessHolding, starts = false, signal }: ClaimOptions,
): Promise<Won | undefined> {
  const asked = { ...request, holder: key.holder, starts }
  if (key.idempotencyKey === undefined && request.session === undefined) {
    return claimTogether(context, asked, signal)
  }
  const claim = (sql: Sql) => (unlessHolding ? claimUnlessHolding : claimOnce)(context, sql, asked)
  return retryClaim(context, () =>
    key.idempotencyKey === undefined ? claim(context.sql) : claimUnderKey(context.sql, request, key, claim),
  )
}

/**
 * The key is stored in the transaction of the claim, together with the leases. A repeated request returns the leases
 * that are still held, in their current state, because the remaining lease is shorter by then. A claim that wins
 * nothing leaves the key free, because it will be tried again. A concurrent request waits for the first one's
 * transaction.
 */
async function claimUnderKey(
  sql: Sql,
  request: ClaimsRequest,
  key: UnitCall,
  claim: (sql: Sql) => Promise<Won | undefined>,
): Promise<Won | undefined> {
  const nothing = new Error('nothing was won')
  let won: Won | undefined
  try {
    const leases = await once(sql, key, ['claims', request], async tx => {
      won = await claim(tx)
      if (won === undefined) throw nothing
      return won.tasks.map(({ id, epoch }) => ({ id, epoch }))
    })
    return won ?? wonEarlier(await readHeldTasks(sql, leases))
  } catch (error) {
    if (error !== nothing) throw error
    return undefined
  }
}

/**
 * The claim names the last claim of the session in its sync id. So of concurrent claims that found that one ended, the
 * first one wins, and the others find its id in the session's row, which a claim locks, and return its tasks.
 */
async function claimUnlessHolding(context: Context, sql: Sql, request: AskedClaim): Promise<Won | undefined> {
  const { session, queues = [], worker, slots = null } = request
  const last = await findLastClaim(sql, session!)
  const isHolding = last !== undefined && last.holding !== null
  if (isHolding || (last !== undefined && last.worker !== worker))
    await openSession(sql, session!, { worker, queues, slots })
  const holding = isHolding ? await readHeldTasks(sql, last.holding!) : []
  if (holding.length > 0) return wonEarlier(holding)
  const won = await claimOnce(context, sql, { ...request, syncId: `after ${last?.claimId ?? 'none'}` })
  // The tasks of a concurrent claim have already ended.
  return won?.tasks.length === 0 ? claimUnlessHolding(context, sql, request) : won
}
