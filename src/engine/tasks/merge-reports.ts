/**
 * Two ways to write reports: each sync by itself, or the reports of many syncs together. The workers of a server send
 * many small batches. Reports that arrive while a statement runs go into the next one, so batches grow with load, and
 * no report waits for others.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import type { BeatOfTask, HeldTask, Refusal, SettledTask, StartedTask } from '../../protocol/tasks/sync.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { renewLeases, startTasks } from '../../store/tasks/settle.ts'
import type { Context } from '../context.ts'
import { advanceJobsOfStages } from '../jobs/advance-job.ts'
import { mergeCalls } from '../merge-calls.ts'
import {
  findLocked,
  type Refused,
  type Reporter,
  type ReporterOf,
  refusal,
  refuseItem,
  splitOnFailure,
  withUniqueTasks,
} from '../retry.ts'
import { reportSettled } from './settle.ts'

export interface Reports {
  readonly settled: Report<SettledTask>
  readonly started: Report<StartedTask>
  readonly beats: Report<BeatOfTask>
}

type Report<Item> = (items: readonly Item[], reporter: Reporter) => Promise<Refusal[]>
type Write<Item> = (items: readonly Item[], reporterOf: ReporterOf) => Promise<Refused[]>

export function directReports(context: Context): Reports {
  return makeReports(context, write => async (items, reporter) => refusalsIn(await write(items, () => reporter)))
}

export function mergedReports(context: Context): Reports {
  return makeReports(context, mergeReports)
}

function makeReports(context: Context, by: <Item extends HeldTask>(write: Write<Item>) => Report<Item>): Reports {
  return {
    settled: by((items, reporterOf) => reportSettled(context, items, reporterOf)),
    started: by((items, reporterOf) => reportStarts(context, items, reporterOf)),
    beats: by(items => reportBeats(context, items)),
  }
}

interface PendingReport<Item> {
  readonly items: readonly Item[]
  readonly reporter: Reporter
}

export function mergeReports<Item extends HeldTask>(write: Write<Item>): Report<Item> {
  const report = mergeCalls<PendingReport<Item>, Refusal[]>(reports => writeReports(write, reports), {
    // Two writes share the wait for the disk.
    concurrentRuns: 2,
    maxSize: 2000,
    sizeOf: ({ items }) => items.length,
  })
  return async (items, reporter) => (items.length === 0 ? [] : report({ items, reporter }))
}

async function writeReports<Item extends HeldTask>(
  write: Write<Item>,
  reports: readonly PendingReport<Item>[],
): Promise<Refusal[][]> {
  const reportOf = new Map<HeldTask, PendingReport<Item>>(
    reports.flatMap(report => report.items.map(item => [item, report] as const)),
  )
  const refused = await write([...reportOf.keys()] as Item[], item => reportOf.get(item)!.reporter)
  if (refused.length === 0) return reports.map(() => [])
  return reports.map(report => refusalsIn(refused.filter(({ item }) => reportOf.get(item) === report)))
}

function refusalsIn(refused: readonly Refused[]): Refusal[] {
  return refused.map(({ refusal }) => refusal)
}

async function reportStarts(
  context: Context,
  items: readonly StartedTask[],
  reporterOf: ReporterOf,
): Promise<Refused[]> {
  const touched = new Set<string>()
  const run = async (batch: readonly StartedTask[]) => {
    const { started, stageIds } = await startTasks(
      context.sql,
      batch,
      batch.map(item => reporterOf(item).worker),
    )
    for (const id of stageIds) touched.add(id)
    return batch.flatMap(item => (started.has(item.id) ? [] : [{ item, refusal: refusal(item, 'LEASE_LOST') }]))
  }
  const refused = await withUniqueTasks(items, turn => splitOnFailure(turn, run, refuseItem, findLocked(context.sql)))
  await advanceJobsOfStages(context, [...touched])
  return refused
}

/** Heartbeats renew leases and carry progress and checkpoints. They never wait for a locked task. */
export async function reportBeats({ sql, metrics }: Context, items: readonly BeatOfTask[]): Promise<Refused[]> {
  const run = async (batch: readonly BeatOfTask[]) => {
    const { lost, passedOver } = await renewLeases(sql, batch)
    metrics.leaseRenewals += batch.length - lost.size - passedOver.size
    const again = await retryBeats(
      sql,
      batch.filter(item => passedOver.has(item.id)),
    )
    return batch.flatMap(item => {
      if (lost.has(item.id) || again.lost.has(item.id)) return [{ item, refusal: refusal(item, 'LEASE_LOST') }]
      return again.passedOver.has(item.id) ? [{ item, refusal: refusal(item, 'TASK_BUSY') }] : []
    })
  }
  return withUniqueTasks(items, turn => splitOnFailure(turn, run, refuseItem))
}

const retryPausesMs = [10, 20, 40, 80]

/** A heartbeat that skipped a locked task has not renewed its lease, so it is retried. */
async function retryBeats(sql: Sql, items: readonly BeatOfTask[]) {
  const lost = new Set<string>()
  let open = items
  for (const ms of retryPausesMs) {
    if (open.length === 0) break
    await sleep(ms)
    const result = await renewLeases(sql, open)
    for (const id of result.lost) lost.add(id)
    open = open.filter(({ id }) => result.passedOver.has(id))
  }
  return { lost, passedOver: new Set(open.map(({ id }) => id)) }
}
