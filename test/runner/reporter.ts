/** A reporter for node:test: it sends each result to the runner, with the titles of the suites around the test. */
import type { TestEvent } from 'node:test/reporters'
import { inspect } from 'node:util'
import { databaseIsUsed } from '../harness/databases.ts'
import { endOfFile, type Report, type TestResult } from './messages.ts'

/** Summary lines that Node prints at the end of a process. */
const ofNode = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/

const send = (report: Report) => process.send?.(report)

// biome-ignore lint/style/noDefaultExport: node:test imports the default export
// biome-ignore lint/correctness/useYield: it prints nothing itself
export default async function* sendResults(events: AsyncIterable<TestEvent>): AsyncGenerator<never> {
  const titles: string[] = []
  /** How many tests each level of nesting has reported since its parent began. */
  const children: number[] = []
  for await (const event of events) {
    if (event.type === 'test:start') {
      titles[event.data.nesting] = event.data.name
      children[event.data.nesting + 1] = 0
    }
    if (event.type === 'test:diagnostic' && !ofNode.test(event.data.message)) {
      send({ kind: 'note', text: event.data.message })
    }
    if (event.type !== 'test:pass' && event.type !== 'test:fail') continue
    const { name, nesting, details, skip } = event.data
    if (nesting === 0 && name === endOfFile) {
      send({ kind: 'ended', usesDatabase: databaseIsUsed() })
      continue
    }
    children[nesting] = (children[nesting] ?? 0) + 1
    const isLeaf = details.type !== 'suite' && (children[nesting + 1] ?? 0) === 0
    const error = event.type === 'test:fail' ? event.data.details.error : undefined
    // A test that failed only because a test inside it did says nothing new.
    const isOwnFault = error !== undefined && (error as { failureType?: string }).failureType !== 'subtestsFailed'
    if (!isLeaf && !isOwnFault) continue
    const result: TestResult = {
      path: [...titles.slice(0, nesting), name],
      outcome: error !== undefined ? 'failed' : skip !== undefined && skip !== false ? 'skipped' : 'passed',
      ms: details.duration_ms,
      ...(error !== undefined && { error: inspect(error.cause ?? error) }),
      ...(typeof skip === 'string' && { error: skip }),
    }
    send({ kind: 'result', result })
  }
}
