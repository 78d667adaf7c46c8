// The comparison: all contenders in turn, round after round, so that a slower machine affects all of them.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Cluster } from '../test/harness/cluster.ts'
import { type Absence, databaseUrl, type Entrant, openConnection, reasonOf } from './entrants.ts'

export interface Plan {
  tasks: number
  rounds: number
  /** Latency samples per round. */
  samples: number
  /** Only the first round may begin after this time (milliseconds of `Date.now`). */
  deadline: number
}

/** The results of a contender: tasks per second of each round, and milliseconds of each latency sample. */
export interface Figures {
  name: string
  version: string
  settings: string
  enqueue: number[]
  drain: number[]
  latency: number[]
}

const stepSeconds = 180

/** A contender that fails in a round is removed: its results are dropped, and the reason is added to `absences`. */
export async function runRounds(
  cluster: Cluster,
  entrants: Entrant[],
  plan: Plan,
  absences: Absence[],
): Promise<Figures[]> {
  const warmUp = { ...plan, tasks: Math.ceil(plan.tasks / 5), samples: 3 }
  let running = entrants.map(entrant => ({ entrant, figures: emptyFigures(entrant) }))
  for (let round = 0; round <= plan.rounds; round++) {
    if (running.length === 0 || (round > 1 && Date.now() > plan.deadline)) break
    // Each round begins with another contender.
    const turn = round % running.length
    for (const each of [...running.slice(turn), ...running.slice(0, turn)]) {
      const { entrant, figures } = each
      try {
        if (round === 0) await runOnce(cluster, entrant, warmUp, emptyFigures(entrant))
        else await runOnce(cluster, entrant, plan, figures)
      } catch (error) {
        absences.push({ name: entrant.name, why: reasonOf(error) })
        running = running.filter(other => other !== each)
      }
    }
    if (round > 0) console.log(`round ${round} of ${plan.rounds}`)
  }
  return running.map(({ figures }) => figures)
}

function emptyFigures({ name, version, contender }: Entrant): Figures {
  return { name, version, settings: contender.settings, enqueue: [], drain: [], latency: [] }
}

async function runOnce(cluster: Cluster, { name, contender }: Entrant, plan: Plan, figures: Figures): Promise<void> {
  const { tasks, samples } = plan
  await contender.clear()
  await settle(cluster, name)
  figures.enqueue.push(tasks / (await secondsOf(`${name}: enqueue`, () => contender.enqueue(tasks))))

  const queued = await contender.left()
  if (queued !== tasks) throw new Error(`${queued} tasks are queued after ${tasks} were enqueued`)
  await settle(cluster, name)
  figures.drain.push(tasks / (await secondsOf(`${name}: drain`, () => contender.drain(tasks))))
  await contender.rest()

  const left = await contender.left()
  if (left !== 0) throw new Error(`${left} of ${tasks} tasks are not completed after the drain`)
  await contender.clear()
  await settle(cluster, name)
  await secondsOf(`${name}: latency`, async () => {
    figures.latency.push(...(await contender.latency(samples)))
  })
  await contender.clear()
}

/** Updates statistics, flushes writes and collects garbage, so that no work of the previous round is left. */
async function settle(cluster: Cluster, name: string): Promise<void> {
  const client = await openConnection(databaseUrl(cluster, name))
  try {
    await client.query('vacuum analyze')
    await client.query('checkpoint')
  } finally {
    await client.end()
  }
  globalThis.gc?.()
}

async function secondsOf(what: string, step: () => Promise<void>): Promise<number> {
  const limit = new AbortController()
  const expiry = sleep(stepSeconds * 1000, undefined, { signal: limit.signal }).then(() => {
    throw new Error(`${what} took more than ${stepSeconds} s`)
  })
  const start = performance.now()
  try {
    await Promise.race([step(), expiry])
    return (performance.now() - start) / 1000
  } finally {
    limit.abort()
    expiry.catch(() => {})
  }
}
