/** Examines a store without changing it, and reports problems with their remedies. */
import type { Examination, Finding } from '../../protocol/admin/admin.ts'
import {
  bloatedTables,
  clockSkew,
  findHoldingSlots,
  longTransactions,
  preparedTransactions,
  schemaDrift,
  serverVersion,
} from '../../store/admin/examine.ts'
import { brokenRules } from '../../store/admin/integrity.ts'
import { feedLag } from '../../store/feed/feed.ts'
import { findUnservedQueues, type UnservedQueues } from '../../store/flow/queue-depths.ts'
import type { Context } from '../context.ts'

/** Values below these thresholds are not reported. */
export interface Thresholds {
  readonly longSeconds: number
  /** The slot of a standby that keeps up stays far below this. */
  readonly slotTransactions: number
  readonly slotBytes: number
}

const defaults: Thresholds = { longSeconds: 60, slotTransactions: 1_000_000, slotBytes: 1_073_741_824 }
const skewSeconds = 2

const examining = new WeakMap<Context['sql'], Promise<Examination>>()

/** An examination reads the whole store, so those who ask while one is in progress get its result. */
export function examineOnce(context: Context, thresholds?: Partial<Thresholds>): Promise<Examination> {
  if (thresholds !== undefined) return examine(context, thresholds)
  const { sql } = context
  const known = examining.get(sql)
  if (known !== undefined) return known
  const started = examine(context).finally(() => examining.delete(sql))
  examining.set(sql, started)
  return started
}

async function examine({ sql, oneConnection }: Context, thresholds: Partial<Thresholds> = {}): Promise<Examination> {
  const { longSeconds, slotTransactions, slotBytes } = { ...defaults, ...thresholds }
  const found = await Promise.all([
    schemaDrift(sql).then(drift => drift.map(drifted)),
    brokenRules(sql).then(broken => broken.map(brokenRule)),
    feedLag(sql).then(seconds => (seconds > longSeconds ? [feedBehind(seconds)] : [])),
    longTransactions(sql, longSeconds).then(long => long.map(longTransaction)),
    preparedTransactions(sql, longSeconds).then(prepared => prepared.map(preparedTransaction)),
    findHoldingSlots(sql, slotTransactions, slotBytes).then(slots => slots.map(holdingSlot)),
    bloatedTables(sql).then(worn => worn.map(wornTable)),
    clockSkew(sql).then(skew => (Math.abs(skew) > skewSeconds ? [skewed(skew)] : [])),
    findUnservedQueues(sql, 60).then(staleQueues),
  ])
  const findings: Finding[] = found.flat()
  if (oneConnection) findings.push(embedded)
  const store = await serverVersion(sql)
  return { store, findings, healthy: findings.every(({ grade }) => grade !== 'bad') }
}

type Found<T extends (...args: never[]) => Promise<unknown[]>> = Awaited<ReturnType<T>>[number]

const drifted = ({ what }: Found<typeof schemaDrift>): Finding => ({
  grade: 'bad',
  what: `Schema: ${what}.`,
  todo: 'Run `pawl migrate` with the newest Pawl that uses this database. If someone altered the tables, put it back.',
})

const brokenRule = ({ rule, entityId, found }: Found<typeof brokenRules>): Finding => ({
  grade: 'bad',
  what: `Rule broken: ${rule}: ${entityId} (${found}).`,
  todo: 'Keep the row and its history, and report it: no request to Pawl can cause this.',
})

const feedBehind = (seconds: number): Finding => ({
  grade: 'warning',
  what: `The event feed is held back: its next event is ${Math.round(seconds)} s old.`,
  todo: 'An older transaction is still open in some database of the server. If none is listed here, this user cannot see it: grant it pg_read_all_stats.',
})

const longTransaction = ({ pid, who, database, state, seconds, query }: Found<typeof longTransactions>): Finding => ({
  grade: 'warning',
  what: `A transaction has been open for ${Math.round(seconds)} s: ${who} on database ${database} (pid ${pid}, ${state}): ${query}`,
  todo: `It keeps dead rows alive and may hold the event feed back. End it: select pg_terminate_backend(${pid}).`,
})

const preparedTransaction = ({ gid, owner, database, seconds }: Found<typeof preparedTransactions>): Finding => ({
  grade: 'warning',
  what: `Transaction '${gid}' of ${owner} on database ${database} was prepared ${Math.round(seconds)} s ago and has not ended.`,
  todo: `It holds its locks and the event feed, also after a restart. In that database: commit prepared '${gid}', or rollback prepared '${gid}'.`,
})

const holdingSlot = ({ name, active, heldTransactions, walBytes }: Found<typeof findHoldingSlots>): Finding => ({
  grade: 'warning',
  what: [
    `Replication slot ${name} (${active ? 'in use' : 'not in use'})`,
    `keeps ${Math.round(walBytes / 1_048_576)} MiB of write-ahead log`,
    `and the dead rows of ${heldTransactions ?? 'no'} transactions.`,
  ].join(' '),
  todo: `It can fill the disk. If it is no longer needed: select pg_drop_replication_slot('${name}').`,
})

const wornTable = ({ name, live, dead, bytes }: Found<typeof bloatedTables>): Finding => ({
  grade: 'warning',
  what: `Bloat: ${name} has ${dead} dead and ${live} live rows, ${Math.round(bytes / 1_048_576)} MiB.`,
  todo: `Check that autovacuum is on and that no old snapshot is open. Then run: vacuum analyze ${name}; or, when traffic is low, vacuum full.`,
})

const skewed = (seconds: number): Finding => ({
  grade: 'warning',
  what: `This clock is ${Math.abs(seconds).toFixed(1)} s ${seconds > 0 ? 'ahead of' : 'behind'} the database's.`,
  todo: 'Pawl uses only the database’s clock, so nothing breaks, but timestamps in logs will differ. Synchronise the clocks.',
})

function staleQueues({ queues, others }: UnservedQueues): Finding[] {
  const named = queues.map(({ queue, due, oldestSeconds }): Finding => {
    const what = `Queue "${queue}" has ${due} due tasks, the oldest for ${Math.round(oldestSeconds)} s, and no worker.`
    return { grade: 'warning', what, todo: `Start a worker that serves the queue "${queue}".` }
  })
  if (others === 0) return named
  return [
    ...named,
    { grade: 'warning', what: `${others} other queues have due tasks and no worker.`, todo: 'Start workers.' },
  ]
}

const embedded: Finding = {
  grade: 'note',
  what: 'The embedded store runs without fsync: it survives the death of the process, but a power cut may lose data.',
  todo: 'For work that must survive that, use a PostgreSQL server: set DATABASE_URL.',
}
