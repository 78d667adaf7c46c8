import { randomBytes } from 'node:crypto'
import { allChores } from '../babysitter/babysitter.ts'
import type { Chore } from '../babysitter/chore.ts'
import { rescue } from '../babysitter/rescue.ts'
import type { Context } from '../engine/context.ts'
import { type Engine, openEngine, type PawlOptions } from '../engine/engine.ts'
import { checkOptions, number } from '../schema/check.ts'
import { movableClock } from '../store/driver/clock.ts'
import { openScratch } from '../store/driver/scratch-store.ts'
import type { Task } from '../worker/define-task.ts'
import { makeChanges } from './changes.ts'
import { type DrainOptions, drain, type Ran } from './drain.ts'
import { type WaitFor, waitFor } from './wait-for.ts'

export type TestEngineOptions = Pick<PawlOptions, 'log' | 'maxPayloadBytes' | 'pipelines'>

/** An engine as any other, on a store in memory, with time in the test's hands. */
export interface TestEngine extends Engine {
  /**
   * Moves the database's clock on and does what has come due by then: leases run out, tasks and jobs expire, graces
   * end, jobs go on. It is one step: what would have come due in between is found at its end.
   */
  advance(seconds: number): Promise<void>
  /**
   * Works everything that is due in the queues of these tasks, as a worker would, until nothing is left. What waits for
   * its time is left, unless `skipWaits` is set.
   */
  drain(tasks: readonly Task[], options?: DrainOptions): Promise<Ran[]>
  /** Resolves with the task, job or stage once it is in a state; if it is not in time, the error tells what was seen. */
  readonly waitFor: WaitFor
}

/** Opens an engine for a test. Those of a process share one store, each with a schema of its own; close it at the end. */
export async function testEngine(options: TestEngineOptions = {}): Promise<TestEngine> {
  const { log, maxPayloadBytes, pipelines, ...unknown } = options
  checkOptions(unknown, {}, 'testEngine')
  const schema = `t_${randomBytes(6).toString('hex')}`
  const changes = makeChanges()
  const { sql, quiet, close } = await openScratch(schema, changes.tell)
  const given = {
    ...(log && { log }),
    ...(maxPayloadBytes !== undefined && { maxPayloadBytes }),
    ...(pipelines && { pipelines }),
  }
  const engine = await openEngine({ ...given, schema, store: { sql, close } })
  const move = await movableClock(quiet)
  const chores = choresOf(engine.context)
  const advance = async (seconds: number) => {
    checkOptions({ seconds }, { seconds: number({ from: 0, to: 1e10 }) }, 'advance')
    await move(seconds)
    await doAll(chores, engine.context)
    // What waits for work looks again: by its own clock nothing has come due.
    engine.context.wake.tell(['*'])
  }
  return {
    ...engine,
    advance,
    drain: (tasks, how) => drain({ engine, advance }, tasks, how),
    waitFor: waitFor({ ...engine.context, sql: quiet }, changes),
  }
}

/** All that moves something. The rescue sees everything: time passes only when the test says so. */
function choresOf(context: Context): Chore[] {
  const watching = ['rescue', 'watch-queues', 'watch-integrity', 'tidy-embedded']
  const others = allChores(context).filter(({ name }) => !watching.includes(name))
  return [rescue({ beginsBlind: false, now: () => 0 }), ...others]
}

const mostRounds = 100

/** Round after round, for what one chore does may be another's to go on with, until a round finds nothing to do. */
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
