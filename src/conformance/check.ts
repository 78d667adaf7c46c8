/** Checks and their reports. A check is a rule that a worker must or should follow, and how the suite tests it. */
import type { Rig } from './rig.ts'

export interface Check {
  readonly id: string
  /** Continues "The worker …". */
  readonly title: string
  /** Required: otherwise work is lost, done twice or never stopped. Advised: otherwise it is slower or harder to watch. */
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

export interface CheckReport extends Pick<Check, 'id' | 'title' | 'level'> {
  readonly passed: boolean
  /** The observation or the fault. */
  readonly seen: string
  /** The last lines of the worker's output; empty if the check passed. */
  readonly output: string
  readonly seconds: number
}

export interface Report {
  readonly worker: string
  /** Whether all required checks passed. */
  readonly passed: boolean
  readonly checks: readonly CheckReport[]
}

/** The report as text. A failed advised check has a different mark, and does not make the worker fail. */
export function printReport({ worker, passed, checks }: Report): string {
  const required = checks.filter(({ level }) => level === 'required')
  const advised = checks.filter(({ level }) => level === 'advised')
  return [
    `Conformance of \`${worker}\``,
    '',
    ...section('Required: the worker …', required),
    ...section('Advised: the worker …', advised),
    `It ${passed ? 'conforms' : 'does not conform'}: ${count(required)} required, ${count(advised)} advised.`,
    '',
  ].join('\n')
}

function section(heading: string, checks: readonly CheckReport[]): string[] {
  return checks.length === 0 ? [] : [heading, ...checks.map(printCheck), '']
}

export function printCheck({ id, title, level, passed, seen, output }: CheckReport): string {
  const mark = passed ? '✓' : level === 'required' ? '✗' : '!'
  const last = passed || output === '' ? [] : output.split('\n').slice(-10)
  return [`  ${mark} ${title} [${id}]`, `      ${seen}`, ...last.map(line => `      | ${line}`)].join('\n')
}

function count(checks: readonly CheckReport[]): string {
  return `${checks.filter(({ passed }) => passed).length} of ${checks.length}`
}
