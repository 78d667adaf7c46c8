/** Tests await facts: what has happened is asked for until it has, and a wait has an end. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Engine } from '../../src/engine/engine.ts'
import { taskLifecycle } from '../../src/kernel/task.ts'
import type { TaskView } from '../../src/protocol/tasks/tasks.ts'

type Looked<T> = T | undefined | false | null

/** Resolves with what `look` finds, as soon as it finds something. */
export async function eventually<T>(
  fact: string,
  look: () => Looked<T> | Promise<Looked<T>>,
  withinSeconds = 30,
): Promise<T> {
  const deadline = performance.now() + withinSeconds * 1000
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false && found !== null) return found
    if (performance.now() > deadline) throw new Error(`not within ${withinSeconds} s: ${fact}`)
    await sleep(15)
  }
}

/** The task once it has ended, however it ended. */
export function ended(engine: Engine, id: string, withinSeconds = 30): Promise<TaskView> {
  const look = async () => {
    const task = await engine.task(id)
    return taskLifecycle.states[task.state].kind === 'final' && task
  }
  return eventually(`task ${id} has ended`, look, withinSeconds)
}

/** A promise that the test keeps when it likes. */
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
