/** Stages without tasks that compute a value from earlier stages, for later stages and for people. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../test/harness/eventually.ts'
import { fresh } from '../../../test/harness/fresh.ts'
import { claim, stageOf, statesOf, workOff } from '../../../test/harness/jobs.ts'
import type { StageSpec } from '../../spec/job-spec.ts'

const work = (name: string): StageSpec => ({ name, task: name, onFailure: 'continue' })
const sum: StageSpec = { name: 'sum', gives: '{"state": stages.a.state, "made": stages.a.output, "asked": input}' }

test('what a stage gives is read by the stages behind it, at once, and by people', async t => {
  const f = await fresh(t)
  const b = { name: 'b', task: 'b', when: 'stages.sum.output.made == 7', forEach: '[stages.sum.output]' }
  const { id } = await f.engine.submit({ name: 'j', input: 'x', stages: [work('a'), sum, b] })
  assert.equal((await stageOf(f, id, 'sum')).output, null)
  await workOff(f, 'a', { outcome: 'succeeded', output: 7 })
  const given = { state: 'succeeded', made: 7, asked: 'x' }
  assert.deepEqual((await stageOf(f, id, 'sum')).output, given)
  const [held] = await claim(f, ['b'])
  assert.deepEqual(held?.payload, given)
  assert.deepEqual(
    (await f.engine.job(id)).stages.map(({ output }) => output),
    [null, given, null],
  )
})

test('a later stage reads what was given long before, by another process', async t => {
  const f = await fresh(t)
  const c = { ...work('c'), forEach: '[stages.sum.output.made]' }
  await f.engine.submit({ name: 'j', stages: [work('a'), sum, work('b'), c] })
  await workOff(f, 'a', { outcome: 'succeeded', output: 'kept' })
  await workOff(f, 'b')
  assert.equal((await claim(f, ['c']))[0]?.payload, 'kept')
})

test('where all work failed, a value that was given does not make the job partial', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({ name: 'j', stages: [work('a'), sum, work('b')] })
  await workOff(f, 'a', 'failed')
  await workOff(f, 'b', 'failed')
  assert.equal(await statesOf(f, id), 'failed: a failed, sum succeeded, b failed')
})

test('an expression that cannot be evaluated fails its stage, and says why', async t => {
  const f = await fresh(t)
  const bad: StageSpec = { name: 'bad', gives: 'stages.a.output.pages[3]' }
  const { id } = await f.engine.submit({ name: 'j', stages: [work('a'), bad] })
  await workOff(f, 'a', { outcome: 'succeeded', output: { pages: [] } })
  assert.equal(await statesOf(f, id), 'failed: a succeeded, bad failed')
  assert.match((await stageOf(f, id, 'bad')).error!.message, /3|index/)
})

test('what is larger than a job may hold is not given', async t => {
  const f = await fresh(t)
  const twice = '[input, input, input, input, input, input, input, input, input, input, input]'
  const { id } = await f.engine.submit({
    name: 'j',
    input: 'x'.repeat(1_000_000),
    stages: [{ name: 'big', gives: twice }],
  })
  const { error } = await eventually('it fails', async () => {
    const stage = await stageOf(f, id, 'big')
    return stage.state === 'failed' ? stage : undefined
  })
  assert.match(error!.message, /more than 1,000,000 characters/)
})

test('a stage that is brought back gives what is true then', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({ name: 'j', stages: [work('a'), { ...sum, gate: true }, work('b')] })
  await workOff(f, 'a', 'failed')
  assert.equal((await stageOf(f, id, 'sum')).state, 'waiting')
  await f.engine.cancelJob(id)
  await f.engine.resumeJob(id)
  await workOff(f, 'a', { outcome: 'succeeded', output: 1 })
  await f.engine.approve((await stageOf(f, id, 'sum')).id)
  assert.deepEqual((await stageOf(f, id, 'sum')).output, { state: 'succeeded', made: 1, asked: null })
})

test('a stage that is skipped gives nothing', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({ name: 'j', stages: [work('a'), { ...sum, when: 'false' }, work('b')] })
  await workOff(f, 'a')
  const { state, output } = await stageOf(f, id, 'sum')
  assert.deepEqual([state, output], ['skipped', null])
})
