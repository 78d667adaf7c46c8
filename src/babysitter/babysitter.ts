/**
 * The babysitter repairs what faults leave behind. It assumes that anything may die at any moment, this process
 * included, and that several babysitters run at once: no chore keeps anything in memory that another would need, and
 * every change is one guarded transaction.
 */
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from '../engine/context.ts'
import { type AnyPawl, engineBehind } from '../engine/engine.ts'
import { vacuumBloatedTables } from '../store/admin/examine.ts'
import { type Chore, keepDoing } from './chore.ts'
import {
  ageLanes,
  continueRedrives,
  countEvents,
  endGraces,
  expireTasks,
  findInputs,
  putInPlace,
  retention,
  sweepUploads,
  watchIntegrity,
  watchQueues,
} from './chores.ts'
import { continueJobs, failStale, jobDeadlines, jobRetention } from './job-chores.ts'
import { rescue } from './rescue.ts'

export function allChores({ oneConnection }: Context): Chore[] {
  const ofTasks = [rescue(), expireTasks, endGraces, retention(), ageLanes(), watchQueues, watchIntegrity, countEvents]
  const ofFiles = [findInputs, putInPlace, sweepUploads]
  const chores = [...ofTasks, continueJobs(), jobDeadlines, failStale, jobRetention, continueRedrives(), ...ofFiles]
  return oneConnection ? [...chores, tidyEmbedded] : chores
}

const patienceMs = 10_000

/** Starts the chores. Call `stop` on the result to end them. */
export function startBabysitter(engine: AnyPawl, chores = allChores(engineBehind(engine).context)) {
  const { context } = engineBehind(engine)
  const ending = new AbortController()
  // Each chore adds a listener, and there are more of them than Node's default limit.
  setMaxListeners(chores.length + 1, ending.signal)
  const done = Promise.all(chores.map(chore => keepDoing(chore, context, ending.signal)))
  const stop = async () => {
    ending.abort()
    // A chore that waits for a closed store must not keep the process from stopping.
    const patience = new AbortController()
    await Promise.race([done, sleep(patienceMs, undefined, { signal: patience.signal }).catch(() => {})])
    patience.abort()
  }
  return { stop, [Symbol.asyncDispose]: stop }
}

/** The embedded store has no autovacuum. Without this chore, its tables would only grow. */
const tidyEmbedded: Chore = {
  name: 'tidy-embedded',
  everySeconds: 60,
  async run({ sql }) {
    return { vacuumed: await vacuumBloatedTables(sql) }
  },
}
