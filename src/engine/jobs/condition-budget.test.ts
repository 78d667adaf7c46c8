import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needsServer } from '../../../test/harness/databases.ts'
import { eventually } from '../../../test/harness/eventually.ts'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { claim, stageOf, statesOf, workOff } from '../../../test/harness/jobs.ts'
import { continueJobs } from '../../babysitter/job-chores.ts'
import { pawl } from '../engine.ts'
import { AfterCommit, advanceInTransaction } from './advance-job.ts'
import { ConditionBudget } from './evaluate-conditions.ts'

const limits = { timeout: 600_000 }
/** Takes about 600,000 steps, more than half of the limit for one condition. */
const costlyCondition = 'input.all(x, input.all(y, x + y >= 0))'
const input = Array.from({ length: 250 }, (_, index) => index)

const costlyStages = (count: number, name = 'stage') =>
  Array.from({ length: count }, (_, index) => ({
    name: `${name}-${index}`,
    task: name,
    needs: [],
    when: costlyCondition,
  }))

const openedStages = async ({ engine }: Fresh, id: string) =>
  (await engine.job(id)).stages.filter(({ state }) => state !== 'created').length

test('while the costly conditions of a job are evaluated, other jobs are served', limits, async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({ name: 'costly', input, stages: costlyStages(60) })
  const cheap = { name: 'a', task: 'a', when: 'input.size() == 1' }
  for (let round = 0; round < 5; round++) {
    const other = await f.engine.submit({ name: 'cheap', input: [1], stages: [cheap] })
    assert.equal(await statesOf(f, other.id), 'pending: a pending', 'it opens at once')
  }
  const done = await openedStages(f, id)
  assert.ok(done < 60, `${done} of 60 were evaluated meanwhile`)
  await eventually('the first of them open', async () => (await openedStages(f, id)) >= 2)
  await f.engine.cancelJob(id)
})

test('jobs with costly conditions take turns', limits, async t => {
  const f = await fresh(t)
  const first = await f.engine.submit({ name: 'first', input, stages: costlyStages(12) })
  const second = await f.engine.submit({ name: 'second', input, stages: costlyStages(2) })
  await eventually('the second has opened', async () => (await openedStages(f, second.id)) === 2)
  await eventually('the first has opened', async () => (await openedStages(f, first.id)) === 12)
  const at = async (id: string) => (await f.engine.job(id)).stages.map(({ changedAt }) => changedAt).sort()
  const [ofFirst, ofSecond] = [await at(first.id), await at(second.id)]
  assert.ok(ofSecond[1]! < ofFirst[11]!, 'the second did not wait for all of the first')
})

test(
  'the conditions of a job fail when together they have taken all steps of its budget, until it is retried',
  limits,
  async t => {
    const f = await fresh(t)
    const counted = await f.engine.submit({ name: 'counted', input, stages: costlyStages(1) })
    await eventually('its condition is evaluated', async () => (await openedStages(f, counted.id)) === 1)
    const [{ spent } = { spent: 0 }] = await f.sql<{ spent: number }>`
      select condition_steps as spent from pawl.job where id = ${counted.id}::uuid`
    assert.ok(spent > 500_000, `${spent} steps are counted`)

    const [a, b] = [
      { name: 'a', task: 'a' },
      { name: 'b', task: 'b', when: costlyCondition },
    ]
    const { id } = await f.engine.submit({ name: 'spent', input, stages: [a!, b!] })
    await f.sql`update pawl.job set condition_steps = 29700000 where id = ${id}::uuid`
    await workOff(f, 'a')
    await eventually('it fails', async () => (await f.engine.job(id)).state === 'failed')
    assert.deepEqual((await stageOf(f, id, 'b')).error, {
      message: 'the conditions of this job have used up their budget of 30,000,000 steps',
    })
    await f.engine.retryJob(id)
    await eventually('with a new budget it opens', async () => (await stageOf(f, id, 'b')).state === 'pending')
  },
)

test('a costly condition is evaluated though the process that postponed it ended', {
  ...limits,
  ...needsServer(),
}, async t => {
  const f = await fresh(t)
  const other = await pawl({ database: f.url!, schema: f.schema, migrate: false })
  const { id } = await other.submit({ name: 'j', input, stages: costlyStages(3) })
  await other.close()
  assert.ok((await openedStages(f, id)) < 3)
  await f.advance(10)
  for (let round = 0; round < 3; round++) {
    await continueJobs().run(f.engine.context)
    await f.advance(10)
  }
  await eventually('its stages open', async () => (await openedStages(f, id)) === 3)
})

test('a condition that looks at more than 16 MiB of outputs fails its stage', limits, async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({
    name: 'j',
    stages: [
      { name: 'a', task: 'a', payloads: Array.from({ length: 17 }, () => null) },
      { name: 'b', task: 'b', forEach: 'stages.a.output' },
    ],
  })
  const output = 'x'.repeat(1_040_000)
  const tasks = await claim(f, ['a'], 17)
  for (const { id, epoch } of tasks) await f.engine.succeed(id, epoch, { output })
  const job = await f.engine.job(id)
  assert.deepEqual(
    [job.state, job.stages[1]!.state, job.stages[1]!.error],
    ['failed', 'failed', { message: 'the condition reads more than 16 MiB of outputs' }],
  )
})

test('a job with very many costly conditions is left alone until its turn comes', limits, async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({ name: 'many', input, stages: costlyStages(600) })
  const after = new AfterCommit()
  await f.sql.begin(tx =>
    advanceInTransaction(f.engine.context, tx, after, id, 'engine', undefined, new ConditionBudget(0)),
  )
  const { postponedJobs, unfinishedJobs } = after
  assert.deepEqual([[...postponedJobs], [...unfinishedJobs]], [[id], []], 'nothing is to be done at once')
  await f.engine.cancelJob(id)
})

test('what the stages of a job give is bounded together: every view of the job shows it', limits, async t => {
  const f = await fresh(t)
  const stages = Array.from({ length: 12 }, (_, n) => ({ name: `s${n}`, needs: [], gives: 'input' }))
  const { id } = await f.engine.submit({ name: 'j', input: 'x'.repeat(900_000), stages })
  const job = await eventually('it has failed', async () => {
    const job = await f.engine.job(id)
    return job.state === 'failed' && job
  })
  assert.ok(JSON.stringify(job.stages).length < 9_000_000)
  const large = await f.engine.submit({
    name: 'j',
    input: 'x'.repeat(900_000),
    stages: [{ name: 's', gives: '[input, input]' }],
  })
  const [stage] = await eventually('it has failed', async () => {
    const { state, stages } = await f.engine.job(large.id)
    return state === 'failed' && stages
  })
  assert.equal(stage!.error?.message, 'it gives more than 1,000,000 characters')
})

test('a short condition cannot fill the store with the payloads of its tasks', limits, async t => {
  const f = await fresh(t)
  const forEach = `[${Array.from({ length: 12 }, () => 'input').join(', ')}]`
  const stages = Array.from({ length: 4 }, (_, n) => ({ name: `s${n}`, needs: [], task: 't', forEach }))
  const { id } = await f.engine.submit({ name: 'j', input: 'x'.repeat(900_000), stages })
  await eventually('it has failed', async () => (await f.engine.job(id)).state === 'failed')
  const { stages: seen } = await f.engine.job(id)
  assert.ok(seen.some(({ error }) => error?.message.includes('budget')))
  assert.ok(seen.filter(({ progress }) => progress.total > 0).length <= 2)
})
