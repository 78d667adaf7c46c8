/** Runs the checks against one worker program, on an engine and a server of the suite's own. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startBabysitter } from '../babysitter/babysitter.ts'
import { endGraces, expireTasks } from '../babysitter/chores.ts'
import { rescue } from '../babysitter/rescue.ts'
import { openEngine } from '../engine/engine.ts'
import { Problem } from '../kernel/problem.ts'
import { nearest } from '../kernel/suggest.ts'
import { abortSignal, callback, checkOptions, field, number, text } from '../schema/check.ts'
import { startServer } from '../server/server.ts'
import { type Check, Fault } from './check.ts'
import { allChecks } from './checks/all.ts'
import type { CheckReport, Report } from './report.ts'
import { openRig, type Site } from './rig.ts'

export interface ConformanceOptions {
  /** The command that starts the worker: a program with its arguments, quoted as in a shell. */
  readonly worker: string
  /** A PostgreSQL server; the suite has a schema of its own there, `pawl_conformance`. Default: the embedded store, in memory. */
  readonly database?: string
  /** Only the checks of these ids. Default: all. */
  readonly only?: readonly string[]
  /** Checks that run at the same time, each with a worker process of its own. Default 4. */
  readonly atOnce?: number
  /** Told of each check as it ends. */
  readonly tell?: (check: CheckReport) => void
  /** Ends the suite, and every process that it has started. */
  readonly signal?: AbortSignal
}

const fields = {
  worker: text(4000),
  database: text(2000),
  only: field({}, value => (Array.isArray(value) ? undefined : 'be a list of checks')),
  atOnce: number({ from: 1, to: 20, whole: true }),
  tell: callback,
  signal: abortSignal,
}

/** Drives a worker program through the protocol. It resolves also where the worker fails: the report says so. */
export async function runConformance(options: ConformanceOptions): Promise<Report> {
  checkOptions({ ...options, worker: options.worker ?? null }, fields, 'conformance')
  const { worker, database, only, atOnce = 4, tell = () => {}, signal } = options
  const checks = only === undefined ? allChecks : only.map(checkNamed)
  const folder = await mkdtemp(join(tmpdir(), 'pawl-conformance-'))
  try {
    await using engine = await openEngine(database === undefined ? {} : { database, schema: 'pawl_conformance' })
    // It has seen every claim from the first on, so it need not wait before it trusts what it sees.
    await using _babysitter = startBabysitter(engine, [rescue({ beginsBlind: false }), expireTasks, endGraces])
    const key = await engine.createKey({ name: 'conformance', role: 'worker' })
    const server = await startServer(engine, { port: 0, keysOnly: true })
    try {
      const site: Site = { engine, serverUrl: server.url, key: key.secret, command: worker, folder, signal }
      const reports = await runAll(site, checks, atOnce, tell)
      const passed = reports.every(report => report.passed || report.level === 'advised')
      return { worker, passed, checks: reports }
    } finally {
      await engine.revokeKey(key.id)
      await server.close()
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function checkNamed(id: string): Check {
  const check = allChecks.find(one => one.id === id)
  if (check !== undefined) return check
  const ids = allChecks.map(one => one.id)
  const meant = nearest(id, ids)
  throw new Problem('OPTION_INVALID', {
    at: 'conformance',
    option: 'only',
    must: `name checks: ${ids.join(', ')}`,
    ...(meant && { didYouMean: meant }),
  })
}

/** The reports, in the order of the checks, some of which run at the same time. */
async function runAll(
  site: Site,
  checks: readonly Check[],
  atOnce: number,
  tell: (check: CheckReport) => void,
): Promise<CheckReport[]> {
  const reports: CheckReport[] = []
  const left = [...checks.entries()]
  const work = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [place, check] = next
      const report = await runCheck(site, check)
      reports[place] = report
      tell(report)
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, checks.length) }, work))
  return reports
}

async function runCheck(site: Site, check: Check): Promise<CheckReport> {
  const { id, title, level } = check
  const began = performance.now()
  const rig = await openRig(site, `conformance-${id}-${randomBytes(4).toString('hex')}`)
  let said: Pick<CheckReport, 'passed' | 'seen' | 'output'>
  try {
    said = { passed: true, seen: await check.run(rig), output: '' }
  } catch (error) {
    // What is no fault of the worker's is one of the suite's, or of this machine: it must not be lost.
    const seen = error instanceof Fault ? error.message : `the suite itself failed: ${(error as Error).stack}`
    said = { passed: false, seen, output: rig.lastWords() }
  } finally {
    await rig.close()
  }
  return { id, title, level, ...said, seconds: (performance.now() - began) / 1000 }
}
