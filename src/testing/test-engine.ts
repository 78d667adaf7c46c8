import { randomBytes } from 'node:crypto'
import { allChores } from '../babysitter/babysitter.ts'
import type { Chore } from '../babysitter/chore.ts'
import { rescue } from '../babysitter/rescue.ts'
import type { Context } from '../engine/context.ts'
import { type Engine, openEngine, type PawlOptions } from '../engine/engine.ts'
import { makeWakeSignal } from '../engine/wake.ts'
import { checkOptions, number } from '../schema/check.ts'
import { movableClock } from '../store/driver/clock.ts'
import { openScratch } from '../store/driver/scratch-store.ts'
import type { Task } from '../worker/define-task.ts'
import { type DrainOptions, drain, type Ran } from './drain.ts'
import { type WaitFor, waitFor } from './wait-for.ts'

/** Options of `testEngine`. */
export type TestEngineOptions = Pick<PawlOptions, 'log' | 'maxPayloadBytes' | 'pipelines'>

/** A full engine on an in-memory store, with a clock that the test controls. */
export interface TestEngine extends Engine {
  /**
   * Advances the database clock and does everything that becomes due: leases run out, tasks and jobs expire, grace
   * periods end, jobs continue. It is a single step: work that becomes due on the way is done at the end.
   */
  advance(seconds: number): Promise<void>
  /**
   * Runs everything that is due in the queues of these tasks, as a worker would, until nothing is left. Tasks that are
   * not due yet stay, unless `skipWaits` is set.
   */
  drain(tasks: readonly Task[], options?: DrainOptions): Promise<Ran[]>
  /**
   * Resolves with the task, job or stage once it is in a state. If that takes too long, the error lists what was seen.
   */
  readonly waitFor: WaitFor
}

/**
 * Opens an engine for a test. The engines of a process share one store, each with a schema of its own. Close the engine
 * at the end of the test.
 *
 * @example
 * await using engine = await testEngine()
 * const { id } = await engine.enqueue('mail', { to: 'ann@example.com' })
 * await engine.drain([sendMail])
 * await engine.waitFor({ id }, 'succeeded')
 */
export async function testEngine(options: TestEngineOptions = {}): Promise<TestEngine> {
  const { log: _log, maxPayloadBytes: _bytes, pipelines: _jobs, ...unknown } = options
  checkOptions(unknown, {}, 'testEngine')
  const schema = `t_${randomBytes(6).toString('hex')}`
  const changes = makeWakeSignal()
  const { sql, quiet, close } = await openScratch(schema, changes.notify)
  const engine = await openEngine({ ...options, schema, store: { sql, close } })
  const move = await movableClock(quiet)
  const chores = choresOf(engine.context)
  const advance = async (seconds: number) => {
    checkOptions({ seconds }, { seconds: number({ from: 0, to: 1e10 }) }, 'advance')
    await move(seconds)
    await doAll(chores, engine.context)
    // Wakes waiting claims: their own clock does not show that anything is due.
    engine.context.wake.notify(['*'])
  }
  return {
    ...engine,
    advance,
    drain: (tasks, how) => drain({ engine, advance }, tasks, how),
    waitFor: waitFor({ ...engine.context, sql: quiet }, changes),
  }
}

/** Every chore that changes something. Rescue is never blind, because time passes only when the test says so. */
function choresOf(context: Context): Chore[] {
  const watching = ['rescue', 'watch-queues', 'watch-integrity', 'tidy-embedded']
  const others = allChores(context).filter(({ name }) => !watching.includes(name))
  return [rescue({ beginsBlind: false, now: () => 0 }), ...others]
}

const mostRounds = 100

/** Repeats all chores until a round finds nothing to do, because one chore may create work for another. */
async function doAll(chores: readonly Chore[], context: Context): Promise<void> {
  for (let round = 0; round < mostRounds; round++) {
    let isQuiet = true
    for (const chore of chores) {
      const did = await chore.run(context)
      if (Object.values(did).some(value => value !== 0 && value !== false)) isQuiet = false
    }
    if (isQuiet) return
  }
  throw new Error(`The chores still find something to do after ${mostRounds} rounds.`)
}
