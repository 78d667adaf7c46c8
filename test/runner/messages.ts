/** The messages between the test runner and the processes that run test files. */
import type { DatabaseName } from '../harness/databases.ts'

/** `url`: of the compiled test file. */
export type Order = { readonly url: string; readonly database: DatabaseName } | 'end'

export interface TestResult {
  /** The titles of the suites around the test, then its own. */
  readonly path: readonly string[]
  readonly outcome: 'passed' | 'failed' | 'skipped'
  readonly ms: number
  /** Why it failed or was skipped. */
  readonly error?: string
}

export type Report =
  | { readonly kind: 'ready' }
  | { readonly kind: 'result'; readonly result: TestResult }
  | { readonly kind: 'note'; readonly text: string }
  | { readonly kind: 'ended'; readonly usesDatabase: boolean }

/** The title of the test that a worker adds behind each file, to learn when the tests of the file have ended. */
export const endOfFile = 'end of file'
