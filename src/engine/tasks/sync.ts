import { Problem } from '../../kernel/problem.ts'
import {
  artifactFields,
  beatFields,
  type FailedAttempt,
  type HeldTask,
  leaseOf,
  type Refusal,
  type SettledTask,
  type SyncAnswer,
  type SyncRequest,
  settledFields,
  startedFields,
  syncFields,
} from '../../protocol/tasks/sync.ts'
import type { NewLogLine } from '../../store/tasks/logs.ts'
import { touchSession } from '../../store/tasks/sessions.ts'
import { findSoftCancels } from '../../store/tasks/settle.ts'
import { checkedJson, checkId, checkOptions, faultOf, number } from '../check.ts'
import type { Context } from '../context.ts'
import { reportArtifacts } from '../files/report-artifacts.ts'
import type { Refused } from '../retry.ts'
import { claimOrWait, withOwnSession } from './claim.ts'
import { logLinesOf, storeLogLines } from './logs.ts'
import { directReports, type Reports } from './merge-reports.ts'

export interface SyncOptions {
  /** How reports are written. Default: each sync by itself. */
  readonly reports?: Reports
  /** Queues of the caller's key. Spawned tasks must be in them. Default: all. */
  readonly queues?: readonly string[] | null
  /** The id of the caller's key. Default: it has none. */
  readonly holder?: string
  /** The events name the worker that holds the lease, not the one of the request. */
  readonly asHolder?: boolean
  /** A repeated end of an attempt is refused like a late one. */
  readonly onlyFirst?: boolean
}

/**
 * One round trip of a worker: starts, heartbeats, results, and a claim.
 *
 * Each part is a transaction of its own, so a failed claim never undoes a settle. Each item is validated before
 * anything is written. Invalid items are refused, and the others go on.
 */
export async function sync(
  context: Context,
  request: SyncRequest,
  signal?: AbortSignal,
  {
    reports = directReports(context),
    queues = null,
    holder = '',
    asHolder = false,
    onlyFirst = false,
  }: SyncOptions = {},
): Promise<SyncAnswer> {
  const { settled, beats, started, artifacts, refused, lines } = checkRequest(context, request)
  const asksForWork = (request.claim ?? 0) > 0
  const mine = withOwnSession(request, holder)
  const began = performance.now()
  const failed: FailedAttempt[] = []
  const onFailed = (one: FailedAttempt) => void failed.push(one)
  const reporter = { worker: asHolder ? null : request.worker, queues, onlyFirst, onFailed }
  const report = async () => {
    const filed = artifacts.length === 0 ? [] : await reportArtifacts(context, artifacts)
    const toSettle = withoutRefusedFiles(settled, filed)
    const [ends, others] = await Promise.all([
      reports.settled(toSettle, reporter),
      reports.started(started, reporter).then(async refusals => {
        const lost = new Set(refusals.map(leaseOf))
        const open = lost.size === 0 ? beats : beats.filter(beat => !lost.has(leaseOf(beat)))
        return [...refusals, ...(await reports.beats(open, reporter))]
      }),
    ])
    return [...refusedFiles(filed, toSettle, ends), ...ends, ...others]
  }
  const settling = lines.length === 0 ? report() : storeLogLines(context, lines).then(report)
  const cancelling =
    asksForWork || beats.length > 0 ? settling.then(() => findSoftCancels(context.sql, request.worker)) : null
  const [refusals, claimed, cancels] = await Promise.all([
    settling,
    asksForWork ? claimOrWait(context, mine, { meanwhile: cancelling, signal }) : { tasks: [], at: began },
    cancelling ?? [],
    beats.length > 0 && !asksForWork && mine.session !== undefined ? touchSession(context.sql, mine.session) : null,
  ])
  return {
    waitedMs: claimed.at - began,
    claimed: claimed.tasks,
    refused: [...refused, ...refusals],
    cancel: cancels.map(({ id, epoch, graceSeconds }) => ({ id, epoch, mode: 'soft', graceSeconds })),
    ...(failed.length > 0 && { failed }),
  }
}

/**
 * An attempt cannot succeed without files that were refused, so its end is refused with them. If its lease is lost, the
 * end may have been reported before.
 */
function withoutRefusedFiles(settled: readonly SettledTask[], filed: readonly Refused[]): readonly SettledTask[] {
  if (filed.length === 0) return settled
  const blocked = new Set(filed.flatMap(({ refusal }) => (refusal.code === 'LEASE_LOST' ? [] : [leaseOf(refusal)])))
  return settled.filter(item => !blocked.has(leaseOf(item)))
}

/** A repeated report finds that its lease has ended. If the end is accepted again, its files are not refused either. */
function refusedFiles(filed: readonly Refused[], settled: readonly HeldTask[], ends: readonly Refusal[]): Refusal[] {
  if (filed.length === 0) return []
  const refusedEnds = new Set(ends.map(leaseOf))
  const accepted = new Set(settled.map(leaseOf).filter(lease => !refusedEnds.has(lease)))
  return filed.flatMap(({ refusal }) => (accepted.has(leaseOf(refusal)) ? [] : [refusal]))
}

function checkRequest(context: Context, request: SyncRequest) {
  checkOptions({ ...request, worker: request.worker ?? null }, syncFields, 'sync')
  const refused: Refusal[] = []
  const lines: NewLogLine[] = []
  const checkItems = <Item extends HeldTask>(items: readonly Item[] = [], check: (item: Item) => void) => {
    const good: Item[] = []
    const countLease = makeLeaseLimit()
    for (const item of items) {
      try {
        const id = checkId(item.id)
        checkEpoch(item)
        countLease({ id, epoch: item.epoch })
        check(item)
        good.push(id === item.id ? item : { ...item, id })
      } catch (error) {
        if (!(error instanceof Problem)) throw error
        refused.push({ ...leaseIn(item), code: error.code, message: error.message })
      }
    }
    return good
  }
  const soundSettled = checkItems(request.settled, item => {
    checkSettled(context, item)
    if (item.logs !== undefined) lines.push(...logLinesOf(item))
  })
  const soundBeats = checkItems(request.beats, item => {
    checkOptions(item, beatFields, 'beats')
    checkContents(context, item, ['progress', 'checkpoint'])
    if (item.logs !== undefined) lines.push(...logLinesOf(item))
  })
  const soundStarted = checkItems(request.started, item => checkOptions(item, startedFields, 'started'))
  // The same outcome reported twice counts once. A different outcome for the same lease is refused when it is written.
  const settled = mergeByKey(soundSettled, item => `${leaseOf(item)} ${item.outcome}`)
  const beats = mergeByKey(soundBeats, leaseOf, (first, later) => ({ ...first, ...later }))
  const started = mergeByKey(soundStarted, leaseOf)
  const artifacts = checkItems(request.artifacts, item => checkOptions(item, artifactFields, 'artifacts'))
  if (beats.length === 0 && started.length === 0) return { settled, beats, started, artifacts, refused, lines }
  // A settle implies that the task started.
  const settling = new Set(settled.map(leaseOf))
  const isOpen = (item: HeldTask) => !settling.has(leaseOf(item))
  return { settled, beats: beats.filter(isOpen), started: started.filter(isOpen), artifacts, refused, lines }
}

export function checkSettled(context: Context, item: SettledTask): void {
  checkEpoch(item)
  checkOptions(item, settledFields, 'settled')
  if (item.outcome === undefined) throw new Problem('OPTION_INVALID', { option: 'outcome', must: 'be given' })
  // A retried attempt would spawn its tasks again.
  if (item.outcome !== 'succeeded' && (item.spawn?.length ?? 0) > 0) {
    throw new Problem('OPTION_INVALID', { at: 'settled', option: 'spawn', must: 'come with the outcome "succeeded"' })
  }
  checkContents(context, item, ['output', 'error', 'reason', 'spawn'])
}

export function checkEpoch({ epoch }: HeldTask): void {
  const fault = faultOf(epochField, epoch)
  if (fault !== undefined) throw new Problem('OPTION_INVALID', { at: 'sync', option: 'epoch', must: fault })
}

/** An item without a valid lease cannot be named in its refusal. */
function leaseIn({ id, epoch }: HeldTask): HeldTask {
  return { id: typeof id === 'string' ? id : '', epoch: Number.isInteger(epoch) && epoch >= 0 ? epoch : 0 }
}

const epochField = number({ from: 0, to: 2 ** 31 - 1, whole: true })

/** Skips absent fields: most reports only say that the task succeeded. */
function checkContents<Item extends object>(
  { maxPayloadBytes }: Context,
  item: Item,
  names: readonly (keyof Item)[],
): void {
  for (const name of names) if (item[name] !== undefined) checkedJson(item[name], maxPayloadBytes, String(name))
}

/**
 * A statement takes each task once, so a sync that names a task a thousand times would need a thousand statements.
 * Reports on the same lease are therefore merged, and a sync may name only a few leases per task. A worker that lost a
 * task and claimed it again names two.
 */
const maxLeasesPerTask = 10

/** Merges items with the same key, in the order of their first occurrence. */
function mergeByKey<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  merge: (first: Item, later: Item) => Item = first => first,
): Item[] {
  const kept = new Map<string, Item>()
  for (const item of items) {
    const key = keyOf(item)
    const first = kept.get(key)
    kept.set(key, first === undefined ? item : merge(first, item))
  }
  return [...kept.values()]
}

/** Refuses leases of a task beyond the limit per sync. Each kind of report needs its own counter. */
function makeLeaseLimit(): (item: HeldTask) => void {
  const leases = new Map<string, Set<string>>()
  return item => {
    const mine = leases.get(item.id) ?? new Set()
    leases.set(item.id, mine.add(leaseOf(item)))
    if (mine.size <= maxLeasesPerTask) return
    const must = `name a task under at most ${maxLeasesPerTask} epochs in one sync`
    throw new Problem('OPTION_INVALID', { at: 'sync', option: 'epoch', must })
  }
}
