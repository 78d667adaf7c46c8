/** A check: one promise that a worker program must or should keep, and how the suite finds out whether it does. */
import type { Rig } from './rig.ts'

export interface Check {
  readonly id: string
  /** What the worker does: reads on from "The worker …". */
  readonly title: string
  /** Required: without it work is lost, done twice or never stopped. Advised: without it work is slower or harder to watch. */
  readonly level: 'required' | 'advised'
  /** Answers with what was seen; throws a `Fault` that says what is wrong. */
  run(rig: Rig): Promise<string>
}

/** The worker did not do what it must: the message says what was seen instead. */
export class Fault extends Error {
  override readonly name = 'Fault'
}

export function expect(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Fault(otherwise)
}
