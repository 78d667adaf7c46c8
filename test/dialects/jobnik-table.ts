/** Runs the rows of a table of seed 001 through Jobnik's own routes. */
import { type TestContext, test } from 'node:test'
import { type Served, served } from '../harness/served.ts'
import { type Jobnik, jobnikClient } from './jobnik-client.ts'

export type Rows = Record<string, (jobnik: Jobnik, run: Served) => Promise<void>>

/** Runs the rows one after the other against one server. */
export function table(title: string, rows: Rows): void {
  test(title, async (t: TestContext) => {
    const run = await served(t)
    const jobnik = jobnikClient(`${run.server.url}/dialects/jobnik`)
    for (const [row, tell] of Object.entries(rows)) await t.test(row, () => tell(jobnik, run))
  })
}

export const illegal = (entity: 'JOB' | 'STAGE' | 'TASK', from: string, to: string) => ({
  message: `Illegal status transition from ${from} to ${to}`,
  code: `ILLEGAL_${entity}_STATUS_TRANSITION`,
})
