/**
 * Two ways to claim: by a statement of its own, or together with others. Claims that arrive while a statement runs share
 * the next one, and each gets its tasks in the order of arrival, leased to its own worker. A claim under a session or an
 * idempotency key runs alone, because what it wins is stored with them.
 */
import type { ClaimsRequest } from '../../protocol/tasks/sync.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { type ClaimResult, claimTasks, type LeaseTerms } from '../../store/tasks/claim.ts'
import type { Claimed } from '../../store/tasks/claimed.ts'
import { openSession, readLastClaim } from '../../store/tasks/sessions.ts'
import type { Context } from '../context.ts'
import { advanceJobsOfStages } from '../jobs/advance-job.ts'
import { againFirst, mergeByStore } from '../merge-calls.ts'
import { retryConflicts } from '../retry.ts'
import { noClaimHints } from './claim-hints.ts'

export interface AskedClaim extends ClaimsRequest {
  readonly holder: string | undefined
  readonly starts: boolean
}

export interface Won {
  readonly tasks: Claimed[]
  /** False: these tasks were claimed earlier, by a request that is repeated now. */
  readonly isNew: boolean
  /** Further tasks were free, but did not fit into the answer. */
  readonly isCut: boolean
  /** Advances the stages of which the first task has started by this claim. Call it after the commit. */
  advanceStages(): Promise<void>
}

export const nothingWon: Won = { tasks: [], isNew: true, isCut: false, advanceStages: async () => {} }
export const wonEarlier = (tasks: Claimed[]): Won => ({ ...nothingWon, tasks, isNew: false })

/** Repeats a claim of which another transaction changed the rows. */
export function retryClaim<T>({ metrics }: Context, claim: () => Promise<T>): Promise<T> {
  return retryConflicts(claim, () => {
    metrics.claimConflicts += 1
  })
}

/**
 * Returns undefined if there is nothing to claim yet. A repeated sync returns what is left of its claim, even if that
 * is nothing, so the worker continues with its next sync. If it claimed again, a late duplicate would claim tasks for a
 * worker that already has its answer.
 */
export async function claimOnce(context: Context, sql: Sql, request: AskedClaim): Promise<Won | undefined> {
  const { session = null, syncId = null, queues = [], worker } = request
  const { tasks, isOpen, isRepeated, isCut, stageIds } = await runStatement(context, sql, request, [request])
  if (!isOpen) {
    // The first claim of the session, or the session was idle for so long that it was removed.
    await openSession(sql, session!, { worker, queues, slots: request.slots ?? null })
    return claimOnce(context, sql, request)
  }
  if (isRepeated) return wonEarlier(await readLastClaim(sql, session!, syncId))
  if (tasks.length === 0) return undefined
  return { tasks, isNew: true, isCut, advanceStages: () => advance(context, stageIds) }
}

/** The tasks are claimed even if this fails, and the babysitter advances their jobs later. */
async function advance(context: Context, stageIds: readonly string[]): Promise<void> {
  await advanceJobsOfStages(context, stageIds).catch(error => {
    context.log('advance.failed', { stages: stageIds.length, error: String(error) })
  })
}

/** The claims take their options, all but the worker and the number of tasks, from the first one. */
async function runStatement(
  context: Context,
  sql: Sql,
  first: AskedClaim,
  claims: readonly AskedClaim[],
): Promise<ClaimResult> {
  const { session = null, syncId = null, queues = [], starts, defaultHeartbeatSeconds } = first
  const { claimHints, metrics } = context
  const hints = claimHints.current()
  const limit = claims.reduce((sum, claim) => sum + countOf(claim), 0)
  const began = performance.now()
  const result = await claimTasks(sql, {
    queues,
    limit,
    workers: claims.length === 1 ? [first.worker] : claims.flatMap(each => Array(countOf(each)).fill(each.worker)),
    session,
    syncId,
    terms: leaseTermsOf(first),
    heartbeatSeconds: defaultHeartbeatSeconds,
    hints,
    starts,
  })
  if (!result.isOpen) return result
  const usedHints = hints.length > 0
  const isFull = result.isCut || result.tasks.length === limit
  claimHints.learn(result.places, { usedHints, isFull, tookMs: performance.now() - began })
  // There may be tasks below the hints. Those that other claims have put back are found without a notification.
  if (usedHints && result.tasks.length === 0 && !result.isRepeated) return runStatement(context, sql, first, claims)
  if (result.isBeaten && !result.isRepeated) metrics.claimConflicts += 1
  return result
}

const countOf = ({ claim = 0 }: AskedClaim) => claim

function leaseTermsOf({ leaseSeconds, heartbeatSeconds, holder }: AskedClaim): LeaseTerms | null {
  if (leaseSeconds === undefined && heartbeatSeconds === undefined && holder === undefined) return null
  return {
    ...(holder !== undefined && { key: holder }),
    ...(leaseSeconds !== undefined && { leaseSeconds }),
    ...(heartbeatSeconds !== undefined && { heartbeatSeconds }),
  }
}

interface WaitingClaim {
  readonly context: Context
  readonly request: AskedClaim
  readonly signal: AbortSignal | undefined
}

/** Returns undefined if there is nothing to claim yet, or the claimer has gone. */
export function claimTogether(
  context: Context,
  request: AskedClaim,
  signal: AbortSignal | undefined,
): Promise<Won | undefined> {
  return mergedClaims(context.sql, { context, request, signal })
}

const merging = {
  // Two claims at once would only skip the rows that the other has locked.
  concurrentRuns: 1,
  slowMs: 50,
  maxSize: 500,
  sizeOf: ({ request }: WaitingClaim) => countOf(request),
  groupOf({ context, request }: WaitingClaim): string {
    const { queues = [], starts, defaultHeartbeatSeconds } = request
    const searchesAll = context.claimHints === noClaimHints
    return JSON.stringify([[...queues].sort(), starts, defaultHeartbeatSeconds, leaseTermsOf(request), searchesAll])
  },
}

const mergedClaims = mergeByStore(claimForAll, merging)

/** A claimer that has disconnected gets no tasks: nobody would work on them until their leases end. */
async function claimForAll(claims: readonly WaitingClaim[]): Promise<(Won | undefined | typeof againFirst)[]> {
  const present = claims.filter(({ signal }) => signal?.aborted !== true)
  const won = present.length === 0 ? new Map<WaitingClaim, Won>() : await claimForPresent(present)
  // Claims that got nothing come first in the next claim, which ends when there is nothing left for anybody.
  const rest = won.size === 0 ? undefined : againFirst
  return claims.map(claim => won.get(claim) ?? (claim.signal?.aborted === true ? undefined : rest))
}

async function claimForPresent(claims: readonly WaitingClaim[]): Promise<Map<WaitingClaim, Won>> {
  const { context, request } = claims[0]!
  const requests = claims.map(claim => claim.request)
  const { tasks, workerIndexes, isCut, stageIds } = await retryClaim(context, () =>
    runStatement(context, context.sql, request, requests),
  )
  let advancing: Promise<void> | undefined
  const advanceStages = () => {
    advancing ??= advance(context, stageIds)
    return advancing
  }
  const claimOfTask = claims.length === 1 ? claims : claims.flatMap(claim => Array(countOf(claim.request)).fill(claim))
  const won = new Map<WaitingClaim, Won>()
  for (const [index, task] of tasks.entries()) {
    const claim: WaitingClaim = claimOfTask[workerIndexes[index]!]
    const mine = won.get(claim) ?? { tasks: [], isNew: true, isCut, advanceStages }
    won.set(claim, mine)
    mine.tasks.push(task)
  }
  return won
}
