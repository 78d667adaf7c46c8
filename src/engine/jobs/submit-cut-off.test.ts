import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { jobRetention } from '../../babysitter/job-chores.ts'
import { Problem } from '../../kernel/problem.ts'
import type { Sql } from '../../store/driver/sql.ts'

const stages = [{ name: 'a', task: 'a', payloads: Array.from({ length: 12_000 }, (_, n) => n) }]

/** Submits a job in batches of 5,000 tasks, and runs `between` after each batch. */
async function submitSlowly({ engine }: Fresh, between: () => Promise<unknown>) {
  const context = engine.context as { sql: Sql }
  const { sql } = context
  const slow = async (strings: TemplateStringsArray, ...values: never[]) => {
    const rows = await sql(strings, ...values)
    if (strings.some(text => text.includes('insert into pawl.task '))) await between()
    return rows
  }
  context.sql = Object.assign(slow, sql) as Sql
  const { sqlFor } = engine.context
  Object.assign(context, {
    sqlFor: (tx: Parameters<typeof sqlFor>[0]) => (tx === undefined ? context.sql : sqlFor(tx)),
  })
  try {
    return await engine.submit({ name: 'slow', stages })
  } finally {
    Object.assign(context, { sql, sqlFor })
  }
}

test('a large submission that takes longer than ten minutes, but goes on, is not taken for one that was cut off', async t => {
  const run = await fresh(t)
  const { state, progress } = await submitSlowly(run, async () => {
    await run.advance(400)
    await jobRetention.run({ ...run.engine.context, sql: run.sql })
  })
  assert.deepEqual([state, progress.total], ['pending', 12_000])
})

test('a submission in which nothing was written for ten minutes is undone, and whoever submits it hears of that', async t => {
  const run = await fresh(t)
  const submitting = submitSlowly(run, async () => {
    await run.advance(700)
    await jobRetention.run({ ...run.engine.context, sql: run.sql })
  })
  await assert.rejects(submitting, (error: unknown) => error instanceof Problem && error.code === 'SUBMIT_CUT_OFF')
  assert.deepEqual((await run.engine.jobs()).items, [])
})
