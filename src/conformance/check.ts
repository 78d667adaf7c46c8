/** A check: a rule that a worker program must or should follow, and how the suite tests it. */
import type { Rig } from './rig.ts'

export interface Check {
  readonly id: string
  /** Continues "The worker …". */
  readonly title: string
  /** Required: without it work is lost, done twice or never stopped. Advised: without it work is slower or harder to watch. */
  readonly level: 'required' | 'advised'
  /** Returns what was observed. Throws a `Fault` if the worker breaks the rule. */
  run(rig: Rig): Promise<string>
}

/** The worker broke the rule. The message says what was observed instead. */
export class Fault extends Error {
  override readonly name = 'Fault'
}

export function expect(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Fault(otherwise)
}
