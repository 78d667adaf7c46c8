import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { Problem } from '../../kernel/problem.ts'
import type { StageSpec } from '../../spec/job-spec.ts'

const size = 400
const chain = (first: Partial<StageSpec> = {}): StageSpec[] =>
  Array.from({ length: size }, (_, index) => ({
    ...{ name: `s${index}`, task: 't', needs: index === 0 ? [] : [`s${index - 1}`] },
    ...(index === 0 ? first : {}),
  }))
const fanIn = (needed: number): StageSpec[] => {
  const names = Array.from({ length: needed }, (_, index) => `s${index}`)
  return [...names.map(name => ({ name, task: 't', needs: [] })), { name: 'last', task: 'last', needs: names }]
}

async function countStatements({ engine }: Fresh, work: () => Promise<unknown>): Promise<number> {
  const { statements } = engine.context.metrics
  const count = () => statements.counts.reduce((sum, n) => sum + n, 0)
  const before = count()
  await work()
  return count() - before
}

test('a job of many stages is submitted, read and cancelled with a few statements', async t => {
  const run = await fresh(t)
  let id = ''
  const submitting = await countStatements(run, async () => {
    id = (await run.engine.submit({ name: 'many', stages: chain() })).id
  })
  assert.ok(submitting < 30, `${submitting} statements`)
  assert.ok((await countStatements(run, () => run.engine.job(id))) <= 2)
  const cancelling = await countStatements(run, () => run.engine.cancelJob(id))
  assert.ok(cancelling < 40, `${cancelling} statements`)
  const { state, stages } = await run.engine.job(id)
  assert.deepEqual([state, new Set(stages.map(stage => stage.state))], ['cancelled', new Set(['cancelled'])])
  const causes = await run.sql`select distinct (history[array_length(history, 1)]).cause from pawl.task`
  assert.equal(causes.length, 1)
})

test('a branch of many stages that is not taken costs one statement for each of them, and no more', async t => {
  const run = await fresh(t)
  let id = ''
  const statements = await countStatements(run, async () => {
    id = (await run.engine.submit({ name: 'skipped', stages: chain({ when: 'false' }) })).id
  })
  assert.ok(statements < size + 60, `${statements} statements`)
  const { state, stages, progress } = await run.engine.job(id)
  assert.deepEqual([state, new Set(stages.map(stage => stage.state))], ['succeeded', new Set(['skipped'])])
  assert.deepEqual([progress.skipped, progress.total], [size, size])
})

test('ending one of many stages that another needs does not read all the others', async t => {
  const run = await fresh(t)
  const { id } = await run.engine.submit({ name: 'fan-in', stages: fanIn(40) })
  const read: number[] = []
  for (let tasks = 0; tasks < 40; tasks++) {
    const { claimed } = await run.sync({ queues: ['t'], claim: 1 })
    const settled = claimed.map(task => ({ id: task.id, epoch: task.epoch, outcome: 'succeeded' as const }))
    read.push(await countStagesRead(run, () => run.sync({ settled })))
  }
  assert.ok(
    read.slice(1, -1).every(rows => rows < 10),
    `stages read: ${read.join(', ')}`,
  )
  const { claimed } = await run.sync({ queues: ['last'], claim: 1 })
  await run.sync({ settled: claimed.map(task => ({ id: task.id, epoch: task.epoch, outcome: 'succeeded' })) })
  assert.equal((await run.engine.job(id)).state, 'succeeded')
})

/** Returns the number of stage rows read while the job advances. */
async function countStagesRead({ engine }: Fresh, work: () => Promise<unknown>): Promise<number> {
  const { sql } = engine.context
  let rows = 0
  const counted = (inner: typeof sql): typeof sql =>
    Object.assign(
      async (strings: TemplateStringsArray, ...values: never[]) => {
        const answer = await inner(strings, ...values)
        if (
          strings.some(text => text.includes('pawl.tally')) &&
          strings.some(text => text.includes('order by s.job_id'))
        ) {
          rows += answer.length
        }
        return answer
      },
      inner,
      {
        begin: (inside: (tx: typeof sql) => Promise<unknown>, bounds?: object) =>
          inner.begin(tx => inside(counted(tx)), bounds),
      },
    ) as typeof sql
  const context = engine.context as { sql: typeof sql }
  context.sql = counted(sql)
  try {
    await work()
  } finally {
    context.sql = sql
  }
  return rows
}

test('a job whose stages need each other more than 200,000 times in all is refused', async t => {
  const { engine } = await fresh(t)
  const names = Array.from({ length: 640 }, (_, index) => `s${index}`)
  const stages = names.map((name, index) => ({ name, task: 't', needs: names.slice(0, index) }))
  const why = (error: unknown) =>
    error instanceof Problem && /at most 200000 needs in total/.test(JSON.stringify(error.details))
  await assert.rejects(engine.submit({ name: 'dense', stages }), why)
})

test('ending a stage that many others need opens all of them in work that grows with their number', async t => {
  const run = await fresh(t)
  const others = Array.from({ length: 5000 }, (_, index) => ({ name: `s${index}`, task: 't', needs: ['first'] }))
  const { id } = await run.engine.submit({ name: 'fan-out', stages: [{ name: 'first', task: 'first' }, ...others] })
  const { claimed } = await run.sync({ queues: ['first'], claim: 1 })
  const before = process.cpuUsage()
  await run.sync({ settled: claimed.map(task => ({ id: task.id, epoch: task.epoch, outcome: 'succeeded' as const })) })
  const { user, system } = process.cpuUsage(before)
  const seconds = (user + system) / 1e6
  t.diagnostic(`${seconds.toFixed(1)} s of processor time`)
  assert.ok(seconds < 8, `${seconds} s of processor time`)
  const { stages } = await run.engine.job(id)
  assert.equal(stages.filter(({ state }) => state === 'pending').length, 5000)
})
