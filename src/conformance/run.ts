/** Runs the checks against a worker program, with an engine and a server of the suite's own. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startBabysitter } from '../babysitter/babysitter.ts'
import { endGraces, expireTasks } from '../babysitter/chores.ts'
import { rescue } from '../babysitter/rescue.ts'
import { openEngine } from '../engine/engine.ts'
import { Problem } from '../kernel/problem.ts'
import { closestWord } from '../kernel/suggest.ts'
import { abortSignal, callback, checkOptions, field, number, text } from '../schema/check.ts'
import { startServer } from '../server/server.ts'
import { type Check, type CheckReport, Fault, type Report } from './check.ts'
import { leaseChecks } from './checks/leases.ts'
import { outcomeChecks } from './checks/outcomes.ts'
import { reportChecks } from './checks/reports.ts'
import { shutdownChecks } from './checks/shutdown.ts'
import { carefulTaskChecks, efficiencyChecks } from './checks/starts.ts'
import { openRig, type SuiteContext } from './rig.ts'

export interface ConformanceOptions {
  /** The shell command that starts the worker: a program and its arguments. */
  readonly worker: string
  /**
   * A PostgreSQL database, in which the suite uses the schema `pawl_conformance`. Default: the embedded store, in
   * memory.
   */
  readonly database?: string
  /** The ids of the checks to run. Default: all. */
  readonly only?: readonly string[]
  /** Number of checks that run at the same time, each with its own worker process. Default 4. */
  readonly concurrency?: number
  /** Called when a check ends. */
  readonly onCheck?: (check: CheckReport) => void
  /** Stops the suite and all processes that it has started. */
  readonly signal?: AbortSignal
}

const fields = {
  worker: text(4000),
  database: text(2000),
  only: field({}, value => (Array.isArray(value) ? undefined : 'be a list of checks')),
  concurrency: number({ from: 1, to: 20, whole: true }),
  onCheck: callback,
  signal: abortSignal,
}

/** Resolves even if the worker fails: see the report. */
export async function runConformance(options: ConformanceOptions): Promise<Report> {
  checkOptions({ ...options, worker: options.worker ?? null }, fields, 'conformance')
  const { worker, database, only, concurrency = 4, onCheck = () => {}, signal } = options
  const checks = only === undefined ? allChecks : only.map(findCheck)
  const folder = await mkdtemp(join(tmpdir(), 'pawl-conformance-'))
  try {
    await using engine = await openEngine(database === undefined ? {} : { database, schema: 'pawl_conformance' })
    // The babysitter sees every claim from the first on, so its rescue need not wait before it takes tasks back.
    await using _babysitter = startBabysitter(engine, [rescue({ beginsBlind: false }), expireTasks, endGraces])
    const key = await engine.createKey({ name: 'conformance', role: 'worker' })
    const server = await startServer(engine, { port: 0, keysOnly: true })
    try {
      const suite: SuiteContext = { engine, serverUrl: server.url, key: key.secret, command: worker, folder, signal }
      const reports = await runAll(suite, checks, concurrency, onCheck)
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

function findCheck(id: string): Check {
  const check = allChecks.find(check => check.id === id)
  if (check !== undefined) return check
  const ids = allChecks.map(check => check.id)
  const near = closestWord(id, ids)
  throw new Problem('OPTION_INVALID', {
    at: 'conformance',
    option: 'only',
    must: `name checks: ${ids.join(', ')}`,
    ...(near && { didYouMean: near }),
  })
}

/** Runs several checks at the same time. Returns the reports in the order of the checks. */
async function runAll(
  suite: SuiteContext,
  checks: readonly Check[],
  concurrency: number,
  onCheck: (check: CheckReport) => void,
): Promise<CheckReport[]> {
  const reports: CheckReport[] = []
  const left = [...checks.entries()]
  const work = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [place, check] = next
      const report = await runCheck(suite, check)
      reports[place] = report
      onCheck(report)
    }
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, checks.length) }, work))
  return reports
}

async function runCheck(suite: SuiteContext, check: Check): Promise<CheckReport> {
  const { id, title, level } = check
  const began = performance.now()
  const rig = await openRig(suite, `conformance-${id}-${randomBytes(4).toString('hex')}`)
  let result: Pick<CheckReport, 'passed' | 'seen' | 'output'>
  try {
    result = { passed: true, seen: await check.run(rig), output: '' }
  } catch (error) {
    // Any other error is a bug of the suite or a problem of this machine, and is reported as such.
    const seen = error instanceof Fault ? error.message : `the suite itself failed: ${(error as Error).stack}`
    result = { passed: false, seen, output: rig.recentOutput() }
  } finally {
    await rig.close()
  }
  return { id, title, level, ...result, seconds: (performance.now() - began) / 1000 }
}

export const allChecks: readonly Check[] = [
  ...outcomeChecks,
  ...leaseChecks,
  ...carefulTaskChecks,
  ...reportChecks,
  ...shutdownChecks,
  ...efficiencyChecks,
]
