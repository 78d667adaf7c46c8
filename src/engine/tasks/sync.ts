import { Problem } from '../../kernel/problem.ts'
import { artifactFields, beatFields, settledFields, startedFields, syncFields } from '../../protocol/fields.ts'
import {
  type HeldTask,
  leaseOf,
  type Refusal,
  type SettledTask,
  type SyncAnswer,
  type SyncRequest,
} from '../../protocol/tasks/sync.ts'
import type { NewLogLine } from '../../store/tasks/logs.ts'
import { touchSession } from '../../store/tasks/sessions.ts'
import { findSoftCancels } from '../../store/tasks/settle.ts'
import { checkedJson, checkId, checkOptions, faultOf, number } from '../check.ts'
import type { Context } from '../context.ts'
import { reportArtifacts } from '../files/report-artifacts.ts'
import { claimOrWait } from './claim.ts'
import { keepLines, linesOf } from './logs.ts'
import { directReports, type Reports } from './merge-reports.ts'

export interface SyncMeans {
  /** How reports are written. Default: those of each sync by themselves. */
  readonly reports?: Reports
  /** The queues that the asker's key is for: what its tasks spawn must be in them. Default: all. */
  readonly queues?: readonly string[] | null
}

/**
 * One round trip of a worker: what it started, its beats, what it settled, and its wish for more.
 *
 * The parts are transactions of their own, so a claim that fails never takes a settle with it. Each item is checked
 * before anything is written; a bad one is refused and its neighbours go on.
 */
export async function sync(
  context: Context,
  request: SyncRequest,
  signal?: AbortSignal,
  { reports = directReports(context), queues = null }: SyncMeans = {},
): Promise<SyncAnswer> {
  const { settled, beats, started, artifacts, refused, lines } = checkRequest(context, request)
  const asksForWork = (request.claim ?? 0) > 0
  const began = performance.now()
  const speaker = { worker: request.worker, queues }
  const report = async () => {
    const filed = artifacts.length === 0 ? [] : await reportArtifacts(context, artifacts)
    const reported = await Promise.all([
      reports.settled(settled, speaker),
      reports.started(started, speaker).then(async refusals => {
        const lost = new Set(refusals.map(leaseOf))
        const open = lost.size === 0 ? beats : beats.filter(beat => !lost.has(leaseOf(beat)))
        return [...refusals, ...(await reports.beats(open, speaker))]
      }),
    ])
    return [filed.map(({ refusal }) => refusal), ...reported]
  }
  const settling = lines.length === 0 ? report() : keepLines(context, lines).then(report)
  const cancelling =
    asksForWork || beats.length > 0 ? settling.then(() => findSoftCancels(context.sql, request.worker)) : null
  const [refusals, claimed, cancels] = await Promise.all([
    settling,
    asksForWork ? claimOrWait(context, request, { beside: cancelling, signal }) : { tasks: [], at: began },
    cancelling ?? [],
    beats.length > 0 && !asksForWork && request.session !== undefined
      ? touchSession(context.sql, request.session)
      : null,
  ])
  return {
    waitedMs: claimed.at - began,
    claimed: claimed.tasks,
    refused: [...refused, ...refusals.flat()],
    cancel: cancels.map(({ id, epoch, graceSeconds }) => ({ id, epoch, mode: 'soft', graceSeconds })),
  }
}

function checkRequest(context: Context, request: SyncRequest) {
  checkOptions({ ...request, worker: request.worker ?? null }, syncFields, 'sync')
  const refused: Refusal[] = []
  const lines: NewLogLine[] = []
  const sound = <Item extends HeldTask>(items: readonly Item[] = [], check: (item: Item) => void) => {
    const good: Item[] = []
    const countLease = countingLeases()
    for (const item of items) {
      try {
        const id = checkId(item.id)
        checkEpoch(item)
        countLease({ id, epoch: item.epoch })
        check(item)
        good.push(id === item.id ? item : { ...item, id })
      } catch (error) {
        if (!(error instanceof Problem)) throw error
        refused.push({ ...named(item), code: error.code, message: error.message })
      }
    }
    return good
  }
  const soundSettled = sound(request.settled, item => {
    checkSettled(context, item)
    if (item.logs !== undefined) lines.push(...linesOf(item))
  })
  const soundBeats = sound(request.beats, item => {
    checkOptions(item, beatFields, 'beats')
    checkContents(context, item, ['progress', 'checkpoint'])
    if (item.logs !== undefined) lines.push(...linesOf(item))
  })
  const soundStarted = sound(request.started, item => checkOptions(item, startedFields, 'started'))
  // The same end, reported twice, is one; another end of the same lease is refused when it is written.
  const settled = oncePer(soundSettled, item => `${leaseOf(item)} ${item.outcome}`)
  const beats = oncePer(soundBeats, leaseOf, (first, later) => ({ ...first, ...later }))
  const started = oncePer(soundStarted, leaseOf)
  const artifacts = sound(request.artifacts, item => checkOptions(item, artifactFields, 'artifacts'))
  if (beats.length === 0 && started.length === 0) return { settled, beats, started, artifacts, refused, lines }
  // A settle says that it started, too.
  const settling = new Set(settled.map(leaseOf))
  const isOpen = (item: HeldTask) => !settling.has(leaseOf(item))
  return { settled, beats: beats.filter(isOpen), started: started.filter(isOpen), artifacts, refused, lines }
}

export function checkSettled(context: Context, item: SettledTask): void {
  checkEpoch(item)
  checkOptions(item, settledFields, 'settled')
  if (item.outcome === undefined) throw new Problem('OPTION_INVALID', { option: 'outcome', must: 'be given' })
  // An attempt that is tried again would make its tasks again.
  if (item.outcome !== 'succeeded' && (item.spawn?.length ?? 0) > 0) {
    throw new Problem('OPTION_INVALID', { at: 'settled', option: 'spawn', must: 'come with the outcome "succeeded"' })
  }
  checkContents(context, item, ['output', 'error', 'reason', 'spawn'])
}

export function checkEpoch({ epoch }: HeldTask): void {
  const fault = faultOf(epochField, epoch)
  if (fault !== undefined) throw new Problem('OPTION_INVALID', { at: 'sync', option: 'epoch', must: fault })
}

/** What was said of an item that names no lease at all cannot be said back. */
function named({ id, epoch }: HeldTask): HeldTask {
  return { id: typeof id === 'string' ? id : '', epoch: Number.isInteger(epoch) ? epoch : 0 }
}

const epochField = number({ from: 0, to: 2 ** 31 - 1, whole: true })

/** What was not said need not be looked at; most reports say nothing but that all went well. */
function checkContents<Item extends object>(
  { maxPayloadBytes }: Context,
  item: Item,
  names: readonly (keyof Item)[],
): void {
  for (const name of names) if (item[name] !== undefined) checkedJson(item[name], maxPayloadBytes, String(name))
}

/**
 * A statement takes a task once, so a sync that names one a thousand times would take a thousand statements. So
 * reports about the same lease are merged, and a sync names few leases of one task: a worker that lost a task and claimed
 * it again names two.
 */
const mostLeases = 10

/** Makes one report of all that have the same key; `merge` says how. They stay in the order of the first ones. */
function oncePer<Item>(
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

/** Refuses a task's lease beyond those that one sync may name. Make one for each kind of report. */
function countingLeases(): (item: HeldTask) => void {
  const leases = new Map<string, Set<string>>()
  return item => {
    const mine = leases.get(item.id) ?? new Set()
    leases.set(item.id, mine.add(leaseOf(item)))
    if (mine.size <= mostLeases) return
    const must = `name a task under at most ${mostLeases} epochs in one sync`
    throw new Problem('OPTION_INVALID', { at: 'sync', option: 'epoch', must })
  }
}
