/** Claims for one who waits: looks, and if there is nothing, looks again when there may be. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClaimsRequest } from '../../protocol/tasks/sync.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { claimTasks, dueByQueue, type LeaseTerms, nextDueSeconds } from '../../store/tasks/claim.ts'
import type { Claimed } from '../../store/tasks/claimed.ts'
import { openSession, readHeldTasks, readLastClaim } from '../../store/tasks/sessions.ts'
import type { Context } from '../context.ts'
import { type Idempotency, once } from '../once.ts'
import { again } from '../split.ts'
import { noHints } from './claim-hints.ts'

const lookAgainSeconds = 0.001
const insistSeconds = 2

export interface ClaimWait {
  /**
   * What else its sync does: what the worker reports may free a slot. It does not wait before that is done, nor look
   * again after it has failed: the sync has failed then, and nobody would hear of what it claims.
   */
  readonly beside?: Promise<unknown> | null
  readonly signal?: AbortSignal | undefined
  /** Nothing is answered only if nothing is due: what others have locked, they may leave. */
  readonly insists?: boolean
  /** The key under which the same claim may be asked for again. */
  readonly key?: Idempotency
  /** What the session's last claim still holds stands for a claim. */
  readonly unlessHolding?: boolean
}

/** Claims; if there is nothing, waits for the word of new work, for a task to come due, or for the time to pass. */
export async function claimOrWait(
  context: Context,
  request: ClaimsRequest,
  { beside, signal, insists = false, key = {}, unlessHolding = false }: ClaimWait,
): Promise<{ tasks: Claimed[]; at: number }> {
  const queues = request.queues ?? []
  const claim = unlessHolding ? claimUnlessHolding : claimOnce
  const began = performance.now()
  const until = began + (request.waitSeconds ?? 0) * 1000
  const isNearlyWon = async () =>
    insists && performance.now() - began < insistSeconds * 1000 && (await isDue(context.sql, queues))
  let pauseSeconds = lookAgainSeconds
  let from = context
  for (;;) {
    const at = performance.now()
    const heard = context.wake.heard()
    const tasks = await look(from, request, key, claim)
    const leftSeconds = (until - performance.now()) / 1000
    // It got as much as it asked for, so there may be more: another one who waits goes and looks.
    if (tasks?.length === request.claim) context.wake.rouse(queues)
    if (tasks !== undefined || signal?.aborted) return { tasks: tasks ?? [], at }
    if (leftSeconds <= 0) {
      if (!(await isNearlyWon())) return { tasks: [], at }
      // What others have put back may lie below the place that they have reached.
      from = { ...context, hints: noHints }
      await sleep(pauseSeconds * 1000)
      pauseSeconds *= 2
      continue
    }
    await beside
    const due = await nextDueSeconds(context.sql, queues)
    // Another claim has its lane just now, or what was settled above has only now freed its slot.
    const isNear = due === 0
    if (due !== null && !isNear) context.wake.expect(due)
    await context.wake.wait(queues, heard, isNear ? Math.min(leftSeconds, pauseSeconds) : leftSeconds, signal)
    pauseSeconds = isNear ? pauseSeconds * 2 : lookAgainSeconds
    if (signal?.aborted) return { tasks: [], at }
  }
}

/**
 * Tasks that were queued together share a place, and whoever claims one of them has it locked for an instant: who came
 * just then has seen nothing.
 */
async function isDue(sql: Sql, queues: readonly string[]): Promise<boolean> {
  return (await dueByQueue(sql, queues)).some(({ seconds }) => seconds <= 0)
}

type Claim = typeof claimOnce

/** Undefined: there is nothing, yet. */
async function look(
  context: Context,
  request: ClaimsRequest,
  key: Idempotency,
  claim: Claim,
): Promise<Claimed[] | undefined> {
  const count = () => {
    context.figures.claimConflicts += 1
  }
  if (key.idempotencyKey !== undefined) return again(() => lookUnderKey(context, request, key, claim), count)
  return again(() => claim(context, context.sql, request, key.holder), count)
}

/**
 * The key is kept in the transaction of the claim, with the leases: asked again, whatever of them is still held is told
 * as it is by then, for a lease is shorter than it was. A look that wins nothing leaves the key free, as it will look
 * again. Two at once: the second waits for the first one's transaction.
 */
async function lookUnderKey(
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
 * Undefined: there is nothing, yet. A sync that is sent again has what is left of its winnings, be it nothing: it is
 * answered, so that its worker goes on with its next one. Were it to claim afresh instead, a copy of it that comes late
 * would claim for a worker that has long had its answer.
 */
async function claimOnce(
  context: Context,
  sql: Sql,
  request: ClaimsRequest,
  holder?: string,
): Promise<Claimed[] | undefined> {
  const { session = null, syncId = null, queues = [], claim: limit = 0, worker } = request
  const hints = context.hints.current()
  const began = performance.now()
  const terms = termsIn(request, holder)
  const heartbeatSeconds = request.defaultHeartbeatSeconds
  const ask = { queues, limit, worker, session, syncId, terms, heartbeatSeconds, hints }
  const { tasks, places, isOpen, isRepeated, isBeaten } = await claimTasks(sql, ask)
  if (!isOpen) {
    // Its first claim, or it was unseen for so long that it was removed.
    await openSession(sql, session!, { worker, queues, slots: request.slots ?? null })
    return claimOnce(context, sql, request, holder)
  }
  context.hints.learn(places, hints.length > 0, performance.now() - began)
  if (isRepeated) return readLastClaim(sql, session!, syncId)
  if (isBeaten) context.figures.claimConflicts += 1
  return tasks.length > 0 ? tasks : undefined
}

function termsIn({ leaseSeconds, heartbeatSeconds }: ClaimsRequest, holder: string | undefined): LeaseTerms | null {
  if (leaseSeconds === undefined && heartbeatSeconds === undefined && holder === undefined) return null
  return {
    ...(holder !== undefined && { key: holder }),
    ...(leaseSeconds !== undefined && { leaseSeconds }),
    ...(heartbeatSeconds !== undefined && { heartbeatSeconds }),
  }
}

/**
 * Of two at once the second waits for the session's row, and then sees what the first has won: a claim alone could not,
 * for it sees what there was when it began.
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
