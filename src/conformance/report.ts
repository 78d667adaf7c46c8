/** The results of the suite, as data and as text. */
import type { Check } from './check.ts'

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
    passed
      ? `It conforms: ${count(required)} required, ${count(advised)} advised.`
      : `It does not conform: ${count(required)} required, ${count(advised)} advised.`,
    '',
  ].join('\n')
}

function section(heading: string, checks: readonly CheckReport[]): string[] {
  return checks.length === 0 ? [] : [heading, ...checks.map(printCheck), '']
}

export function printCheck({ id, title, level, passed, seen, output }: CheckReport): string {
  const mark = passed ? '✓' : level === 'required' ? '✗' : '!'
  const lines = [`  ${mark} ${title} [${id}]`, `      ${seen}`]
  if (!passed && output !== '')
    lines.push(
      ...output
        .split('\n')
        .slice(-10)
        .map(line => `      | ${line}`),
    )
  return lines.join('\n')
}

function count(checks: readonly CheckReport[]): string {
  return `${checks.filter(({ passed }) => passed).length} of ${checks.length}`
}
