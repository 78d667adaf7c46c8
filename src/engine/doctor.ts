/** Looks at a store as a doctor would: what is wrong, and what to do about it. It changes nothing. */

import type { Examination, Finding } from '../protocol/operations.ts'
import { clockSkew, pinnedSnapshots, schemaDrift, serverVersion, wornTables } from '../store/examine.ts'
import { brokenRules } from '../store/integrity.ts'
import { staleQueues } from '../store/stale.ts'
import type { Context } from './context.ts'

const pinnedSeconds = 60
const skewSeconds = 2

export async function examine({ sql, oneConnection }: Context): Promise<Examination> {
  const found = await Promise.all([
    schemaDrift(sql).then(drift => drift.map(drifted)),
    brokenRules(sql).then(broken => broken.map(brokenRule)),
    pinnedSnapshots(sql, pinnedSeconds).then(pinned => pinned.map(pinnedSnapshot)),
    wornTables(sql).then(worn => worn.map(wornTable)),
    clockSkew(sql).then(skew => (Math.abs(skew) > skewSeconds ? [skewed(skew)] : [])),
    staleQueues(sql, 60).then(stale => stale.map(staleQueue)),
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
  todo: 'Keep the row and its history as evidence and report it; no request of Pawl’s can have caused this.',
})

const pinnedSnapshot = ({ pid, who, state, seconds, query }: Found<typeof pinnedSnapshots>): Finding => ({
  grade: 'warning',
  what: `A snapshot is pinned for ${Math.round(seconds)} s by ${who} (pid ${pid}, ${state}): ${query}`,
  todo: `It keeps dead rows alive and holds the event feed back. End it: select pg_terminate_backend(${pid}).`,
})

const wornTable = ({ name, live, dead, bytes }: Found<typeof wornTables>): Finding => ({
  grade: 'warning',
  what: `Bloat: ${name} has ${dead} dead rows beside ${live} living ones, ${Math.round(bytes / 1_048_576)} MiB.`,
  todo: `Is autovacuum on, and no snapshot pinned? Then: vacuum analyze ${name}; in a quiet hour: vacuum full.`,
})

const skewed = (seconds: number): Finding => ({
  grade: 'warning',
  what: `This clock is ${Math.abs(seconds).toFixed(1)} s ${seconds > 0 ? 'ahead of' : 'behind'} the database's.`,
  todo: 'Nothing breaks, for only the database’s clock counts; but logs will not line up. Synchronise the clocks.',
})

const staleQueue = ({ queue, due, oldestSeconds }: Found<typeof staleQueues>): Finding => ({
  grade: 'warning',
  what: `Queue "${queue}" has ${due} due tasks, the oldest for ${Math.round(oldestSeconds)} s, and no worker.`,
  todo: `Start a worker that serves the queue "${queue}".`,
})

const embedded: Finding = {
  grade: 'note',
  what: 'The embedded store runs without fsync: it survives the death of the process, but a power cut may lose data.',
  todo: 'For work that must survive that, use a PostgreSQL server: set DATABASE_URL.',
}
