// Shared by measures with an engine: fill a queue, drain it, and run small jobs.

import { setTimeout as sleep } from 'node:timers/promises'
import { defineTask, type Pawl, startWorker } from '../dist/index.js'
import { countdown, enqueueInBatches, payload } from './contender.ts'

const workerSettings = { concurrency: 200, buffer: 1800, waitSeconds: 5 }
const submittersAtOnce = 4

export function fill(engine: Pawl, count: number): Promise<void> {
  return enqueueInBatches({ count, batch: 5000, atOnce: 2 }, payloads =>
    engine.enqueueMany(payloads.map(payload => ({ type: 'noop', payload }))),
  )
}

/** Drains the queue with two workers. Returns tasks per second. */
export async function drain(engine: Pawl, count: number): Promise<number> {
  const { done, tick } = countdown(count)
  const noop = defineTask({ type: 'noop', handler: async () => tick() })
  const began = performance.now()
  const workers = [startWorker(engine, [noop], workerSettings), startWorker(engine, [noop], workerSettings)]
  await done
  while (workers.some(worker => worker.inHand() > 0)) await new Promise(setImmediate)
  const seconds = (performance.now() - began) / 1000
  await Promise.all(workers.map(worker => worker.stop()))
  return count / seconds
}

/** Jobs of three stages of one task, submitted by four callers at once. */
export async function submitSmallJobs(engine: Pawl, count: number): Promise<void> {
  let left = count
  const submit = async () => {
    while (left-- > 0) {
      const stages = ['a', 'b', 'c'].map(name => ({ name, task: 'noop', payload: payload(left) }))
      await engine.submit({ name: 'small', stages })
    }
  }
  await Promise.all(Array.from({ length: submittersAtOnce }, submit))
}

export interface SmallJobRates {
  /** Jobs per second, without workers. */
  submitted: number
  /** Jobs per second of draining them. */
  workedOff: number
  /** Jobs per second from the first submit to the last end, with workers that run meanwhile. */
  endToEnd: number
}

export async function smallJobRates(engine: Pawl, count: number): Promise<SmallJobRates> {
  await submitSmallJobs(engine, 50)
  await drain(engine, 150)
  await untilJobsEnd(engine)
  const submitSeconds = await secondsOf(() => submitSmallJobs(engine, count))
  const workSeconds = await secondsOf(async () => {
    await drain(engine, 3 * count)
    await untilJobsEnd(engine)
  })
  const allSeconds = await secondsOf(async () => {
    const working = drain(engine, 3 * count)
    await submitSmallJobs(engine, count)
    await working
    await untilJobsEnd(engine)
  })
  return { submitted: count / submitSeconds, workedOff: count / workSeconds, endToEnd: count / allSeconds }
}

/** A job ends a moment after its last task. */
async function untilJobsEnd(engine: Pawl): Promise<void> {
  const open = async (state: 'pending' | 'running') => (await engine.jobs({ state, limit: 1 })).items.length > 0
  while ((await open('running')) || (await open('pending'))) await sleep(2)
}

export async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return (performance.now() - began) / 1000
}

/** One-step work that a client starts and awaits. */
export interface Flow {
  name: string
  /** Resolves when the client has learned of its end. */
  run(payload: object): Promise<void>
  close(): Promise<void>
}
