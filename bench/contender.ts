// The interface of a queue in the benchmark: a file in contenders/, named like its package, that exports `openContender`.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Cluster } from '../test/harness/cluster.ts'

export interface ContenderEnv {
  /** An empty database of the contender's own, on the cluster that all of them share. */
  databaseUrl: string
}

export type OpenContender = (env: ContenderEnv) => Promise<Contender>

export interface Contender {
  /** Describes its set-up in a sentence, for the report. */
  settings: string
  /** Adds `count` tasks, as fast as its documentation allows. */
  enqueue(count: number): Promise<void>
  /** Runs tasks until `count` handlers have run and their completion is recorded. */
  drain(count: number): Promise<void>
  /** Stops the workers that `drain` started; not timed. */
  rest(): Promise<void>
  /** Milliseconds from the call that enqueues one task to the start of its handler, with idle workers. */
  latency(samples: number): Promise<number[]>
  /** The number of tasks that are not completed: 0 after a drain. */
  left(): Promise<number>
  /** Removes all tasks, so that each round starts in the same way. */
  clear(): Promise<void>
  close(): Promise<void>
}

export interface MeasureEnv {
  cluster: Cluster
  /** The settings of the cluster, for a measure that starts one of its own. */
  settings: Record<string, string>
  quick: boolean
  /** A measure leaves out what it cannot finish before this time (milliseconds of `Date.now`). */
  deadline: number
}

/** One number of a run, kept in history.json under its name. */
export interface Figure {
  name: string
  value: number
  unit: 'tasks/s' | 'jobs/s' | 'ms' | 's' | 'x' | 'bytes' | '%' | 'MiB'
  better: 'higher' | 'lower'
}

/** A part of the report after the comparison. */
export interface Section {
  title: string
  markdown: string
  figures?: Figure[]
}

/** Measures that concern Pawl alone: one file in measures/ each, exporting `measure`. */
export interface Measure {
  name: string
  run(env: MeasureEnv): Promise<Section>
}

/** About a hundred bytes of JSON, the same for all contenders. */
export function payload(index: number): { order: number; customer: string; note: string } {
  return { order: index, customer: 'customer-4711@example.com', note: 'a parcel of books, leave at the door' }
}

/** Sends `count` payloads in batches, with a limited number of concurrent calls of `send`. */
export async function enqueueInBatches(
  { count, batch, atOnce }: { count: number; batch: number; atOnce: number },
  send: (payloads: object[], lane: number) => Promise<unknown>,
): Promise<void> {
  let next = 0
  const lane = async (index: number) => {
    while (next < count) {
      const first = next
      next = Math.min(count, first + batch)
      await send(
        Array.from({ length: next - first }, (_, offset) => payload(first + offset)),
        index,
      )
    }
  }
  await Promise.all(Array.from({ length: atOnce }, (_, index) => lane(index)))
}

/** Counts handlers; `done` resolves when the expected number has been reached. */
export function countdown(expected: number): { done: Promise<void>; tick(by?: number): void } {
  let open = expected
  let finish = () => {}
  const done = new Promise<void>(resolve => {
    finish = resolve
  })
  return {
    done,
    tick(by = 1) {
      open -= by
      if (open <= 0) finish()
    },
  }
}

/** One task at a time on idle workers. The pauses between tasks vary, so that they do not match the timer of a queue. */
export function latencyProbe() {
  let arrive = (_at: number) => {}
  return {
    handler: async () => arrive(performance.now()),
    async sample(samples: number, enqueueOne: () => Promise<unknown>): Promise<number[]> {
      const took: number[] = []
      for (let sample = 0; sample < samples; sample++) {
        await sleep(5 + Math.random() * 20)
        const arrival = new Promise<number>(resolve => {
          arrive = resolve
        })
        const asked = performance.now()
        await enqueueOne()
        took.push((await arrival) - asked)
      }
      return took
    },
  }
}
