/** Polls for facts instead of sleeping. Every wait has a time limit. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Engine } from '../../src/engine/engine.ts'
import { taskLifecycle } from '../../src/kernel/task.ts'
import type { TaskView } from '../../src/protocol/tasks/tasks.ts'

type Polled<T> = T | undefined | false | null

/** Resolves with the result of `poll` as soon as it finds something. */
export async function eventually<T>(
  fact: string,
  poll: () => Polled<T> | Promise<Polled<T>>,
  withinSeconds = 300,
): Promise<T> {
  const deadline = performance.now() + withinSeconds * 1000
  for (;;) {
    const found = await poll()
    if (found !== undefined && found !== false && found !== null) return found
    if (performance.now() > deadline) throw new Error(`not within ${withinSeconds} s: ${fact}`)
    await sleep(15)
  }
}

/** Waits until a task has ended, in any final state. */
export function ended(engine: Pick<Engine, 'task'>, id: string, withinSeconds = 300): Promise<TaskView> {
  const poll = async () => {
    const task = await engine.task(id)
    return taskLifecycle.states[task.state].kind === 'final' && task
  }
  return eventually(`task ${id} has ended`, poll, withinSeconds)
}

/** A promise that the test resolves when it needs to. */
export interface Latch<T> {
  readonly opened: Promise<T>
  open(value: T): void
}

export function latch<T = void>(): Latch<T> {
  let open: (value: T) => void = () => {}
  const opened = new Promise<T>(resolve => {
    open = resolve
  })
  return { opened, open }
}
