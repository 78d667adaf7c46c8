/** Jobs that are driven together, and long ones that are read in part, behave like any other. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobSpec } from '../../src/spec/job-spec.ts'
import { needsServer } from '../harness/databases.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { claim, say, stageOf, statesOf, workOff } from '../harness/jobs.ts'

const upTo = (count: number) => Array.from({ length: count }, (_, n) => n)
const chain = (length: number, more: Partial<JobSpec> = {}): JobSpec => ({
  name: 'chain',
  stages: upTo(length).map(n => ({ name: `s${n}`, task: 'a' })),
  ...more,
})
const statesIn = async ({ engine }: Fresh, id: string) => (await engine.job(id)).stages.map(({ state }) => state)

test('a chain of thirty stages opens one after the other, each before the answer', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit(chain(30))
  for (const n of upTo(30)) {
    const expected = upTo(30).map(k => (k < n ? 'succeeded' : k === n ? 'pending' : 'created'))
    assert.deepEqual(await statesIn(f, id), expected)
    assert.equal(await workOff(f, 'a'), 1)
  }
  assert.equal((await f.engine.job(id)).state, 'succeeded')
})

test('a stage that fails in the middle of thirty ends all that come after it', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit(chain(30))
  for (const _ of upTo(14)) await workOff(f, 'a')
  await workOff(f, 'a', 'failed')
  const ends = upTo(30).map(k => (k < 14 ? 'succeeded' : k === 14 ? 'failed' : 'cancelled'))
  assert.deepEqual(await statesIn(f, id), ends)
  assert.equal((await f.engine.job(id)).state, 'failed')
})

test('what is added to a long job while it runs opens when its turn comes', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit(chain(20, { open: 'untilDone' }))
  for (const _ of upTo(10)) await workOff(f, 'a')
  await f.engine.addStages(id, [{ name: 'early', task: 'b', needs: ['s10'] }])
  assert.equal((await stageOf(f, id, 'early')).state, 'created')
  await workOff(f, 'a')
  assert.equal((await stageOf(f, id, 'early')).state, 'pending')
  assert.equal((await stageOf(f, id, 's11')).state, 'pending')
  for (const _ of upTo(9)) await workOff(f, 'a')
  assert.equal((await f.engine.job(id)).state, 'running')
  await workOff(f, 'b')
  assert.equal((await f.engine.job(id)).state, 'succeeded')
})

test('of a long job, a condition sees stages that ended long ago', async t => {
  const f = await fresh(t)
  const { stages = [] } = chain(12)
  const last = { name: 'last', task: 'b', when: 'stages.s0.output == 7' }
  const { id } = await f.engine.submit(chain(12, { stages: [...stages, last] }))
  await workOff(f, 'a', { outcome: 'succeeded', output: 7 })
  for (const _ of upTo(11)) await workOff(f, 'a')
  assert.equal((await stageOf(f, id, 'last')).state, 'pending')
})

test('a hundred and twenty jobs whose tasks are settled at once have all gone on before the answer', async t => {
  const f = await fresh(t)
  const ids: string[] = []
  for (const n of upTo(120)) {
    const first = { name: 'a', task: 'a', ...(n % 3 === 0 && { payloads: [1, 2] }) }
    const second = n % 2 === 0 ? { name: 'b', task: 'b' } : { name: 'b', task: 'b', forEach: '[1, 2, 3]' }
    ids.push((await f.engine.submit({ name: 'j', stages: [first, second] })).id)
  }
  await say(f, await claim(f, ['a'], 1000), 'succeeded')
  for (const id of ids) assert.equal(await statesOf(f, id), 'running: a succeeded, b pending')
  assert.equal(await workOff(f, 'b'), 240)
  for (const id of ids) assert.equal(await statesOf(f, id), 'succeeded: a succeeded, b succeeded')
})

test('a job that somebody holds up does not hold up those that are settled with it', needsServer(), async t => {
  const f = await fresh(t)
  const ids: string[] = []
  for (const _ of upTo(5)) ids.push((await f.engine.submit(chain(2))).id)
  const held = ids[2]!
  const tasks = await claim(f, ['a'])
  let settling: Promise<void> | undefined
  await f.sql.begin(async tx => {
    await tx`select id from pawl.job where id = ${held}::uuid for update`
    settling = say(f, tasks, 'succeeded')
    const others = ids.filter(id => id !== held)
    const haveGoneOn = async () => {
      const states = await Promise.all(others.map(id => statesOf(f, id)))
      return states.every(state => state === 'running: s0 succeeded, s1 pending')
    }
    while (!(await haveGoneOn())) await new Promise(setImmediate)
    assert.equal(await statesOf(f, held), 'pending: s0 pending, s1 created')
  })
  await settling
  assert.equal(await statesOf(f, held), 'running: s0 succeeded, s1 pending')
})
