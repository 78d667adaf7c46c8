/** The output of a test run: a line per file, then the failures, the longest files and the totals. */
import type { RunResult } from './pool.ts'

const count = (runs: readonly RunResult[], outcome: string) =>
  runs.reduce((sum, run) => sum + run.results.filter(result => result.outcome === outcome).length, 0)

export const isGood = (run: RunResult) => count([run], 'failed') === 0

export function fileLine(run: RunResult): string {
  const skipped = count([run], 'skipped')
  const parts = [
    `${count([run], 'passed')} passed`,
    ...(isGood(run) ? [] : [`${count([run], 'failed')} FAILED`]),
    ...(skipped > 0 ? [`${skipped} skipped`] : []),
  ]
  return `${isGood(run) ? '✔' : '✖'} ${nameOf(run)}: ${parts.join(', ')} (${run.seconds.toFixed(1)} s)`
}

export function failureLines(run: RunResult): string[] {
  const failed = run.results.filter(({ outcome }) => outcome === 'failed')
  if (failed.length === 0) return []
  return [
    ...failed.flatMap(({ path, error = '' }) => [`  ✖ ${path.join(' › ')}`, indent(error)]),
    ...run.notes.map(indent),
    ...(run.output === '' ? [] : ['  The file printed:', indent(run.output.slice(-8000))]),
  ]
}

/** Where the time goes. */
export function longestLines(runs: readonly RunResult[]): string[] {
  const longest = [...runs].sort((one, other) => other.seconds - one.seconds).slice(0, 10)
  return ['The ten longest files:', ...longest.map(run => `  ${run.seconds.toFixed(0).padStart(4)} s  ${nameOf(run)}`)]
}

export function totalLine(runs: readonly RunResult[]): string {
  const skipped = count(runs, 'skipped')
  return `${count(runs, 'passed')} passed, ${count(runs, 'failed')} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}

/** One line per test, sorted: two runs of a commit must write the same list. */
export function titleList(runs: readonly RunResult[]): string {
  const titles = runs.flatMap(run => run.results.map(({ path }) => `${nameOf(run)}: ${path.join(' › ')}\n`))
  return titles.sort().join('')
}

const nameOf = ({ file, database }: RunResult) => (database === 'postgres 18' ? file : `${file} [${database}]`)

const indent = (text: string) => text.replace(/^/gm, '    ')
