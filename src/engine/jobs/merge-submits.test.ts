import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { latch } from '../../../test/harness/eventually.ts'
import { fresh } from '../../../test/harness/fresh.ts'
import { statesOf, workOff } from '../../../test/harness/jobs.ts'
import { Problem } from '../../kernel/problem.ts'
import type { SmallJob } from '../../store/jobs/insert-jobs.ts'
import { mergeSubmits } from './small-jobs.ts'

const job = (id: string, tasks = 1) => {
  const stage = { tasks: Array.from({ length: tasks }, () => ({ id: '', payload: '1' })) }
  return { id, stages: [stage] } as unknown as SmallJob
}

/** Holds every batch until the gate opens, then runs `write` on the names of its jobs. */
function heldStore(write: (names: readonly string[]) => void = () => {}) {
  const batches: string[] = []
  const gate = latch()
  const submit = mergeSubmits(async jobs => {
    const names = jobs.map(({ id }) => id)
    batches.push(names.join(' '))
    await gate.opened
    write(names)
    return new Date(batches.length)
  })
  return { batches, gate, submit }
}

test('jobs that are submitted while a statement runs are written together by the next one', async () => {
  const { batches, gate, submit } = heldStore()
  const first = submit(job('a'))
  await nextTurn()
  assert.deepEqual(batches, ['a'], 'the first one does not wait')
  const answers = [first, ...['b', 'c', 'd'].map(name => submit(job(name)))]
  gate.open()
  await Promise.all(answers)
  assert.deepEqual(batches, ['a', 'b c d'])
})

test('a statement writes a limited number of tasks, and a long line of jobs keeps its order', async () => {
  const { batches, gate, submit } = heldStore()
  const answers = ['a', 'b', 'c', 'd', 'e'].map(name => submit(job(name, 120)))
  gate.open()
  await Promise.all(answers)
  assert.deepEqual(batches, ['a b', 'c d', 'e'])
})

test('a job that cannot be written fails alone; the jobs beside it are written', async () => {
  const { batches, gate, submit } = heldStore(names => {
    if (names.includes('bad')) throw new Error('bad')
  })
  const answers = Promise.allSettled(['first', 'a', 'bad', 'c'].map(name => submit(job(name))))
  gate.open()
  const states = (await answers).map(({ status }) => status)
  assert.deepEqual(states, ['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
  assert.deepEqual(batches, ['first a bad c', 'first', 'a', 'bad', 'c'])
})

test('if the store is away, nothing is written twice: it may have committed', async () => {
  const { batches, gate, submit } = heldStore(names => {
    if (names.length > 1) throw new Problem('STORE_UNAVAILABLE')
  })
  const first = submit(job('first'))
  await nextTurn()
  const answers = Promise.allSettled([first, submit(job('a')), submit(job('b'))])
  gate.open()
  const states = (await answers).map(({ status }) => status)
  assert.deepEqual(states, ['fulfilled', 'rejected', 'rejected'])
  assert.deepEqual(batches, ['first', 'a b'])
  await submit(job('c'))
  assert.deepEqual(batches, ['first', 'a b', 'c'], 'the next submit goes to the store again')
})

test('of jobs submitted at once, one that the database cannot store fails, and all others run', async t => {
  const run = await fresh(t)
  const spec = (name: string) => ({ name, metadata: { text: name }, stages: [{ name: 's', task: 'work' }] })
  const names = ['one', 'two', 'no\u0000no', 'three', 'four']
  const ends = await Promise.allSettled(names.map(text => run.engine.submit({ ...spec('j'), metadata: { text } })))
  assert.deepEqual(
    ends.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
  )
  assert.equal(await workOff(run, 'work'), 4)
  for (const end of ends) {
    if (end.status === 'fulfilled') assert.equal(await statesOf(run, end.value.id), 'succeeded: s succeeded')
  }
  assert.equal((await run.engine.jobs({})).items.length, 4)
})

test('jobs submitted at once, one of them twice under its key and one with a chosen id, exist once each', async t => {
  const run = await fresh(t)
  const spec = { name: 'j', stages: [{ name: 's', task: 'work' }] }
  const id = '0198a3c4-0000-7000-8000-000000000001'
  const key = { idempotencyKey: 'k' }
  const [plain, first, again, chosen, taken] = await Promise.allSettled([
    run.engine.submit(spec),
    run.engine.submit(spec, key),
    run.engine.submit(spec, key),
    run.engine.submit({ ...spec, id }),
    run.engine.submit({ ...spec, id }),
  ])
  assert.deepEqual(
    [plain, first, again].map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'fulfilled'],
  )
  assert.deepEqual(first, again)
  assert.deepEqual([chosen, taken].map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  const refused = [chosen, taken].find(({ status }) => status === 'rejected') as PromiseRejectedResult
  assert.equal(refused.reason.code, 'ID_TAKEN')
  assert.equal((await run.engine.jobs({})).items.length, 3)
})
