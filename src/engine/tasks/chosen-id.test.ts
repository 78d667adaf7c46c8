/** Ids chosen by callers, and repeated requests whose result depends on the time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import { statesOf, workOff } from '../../../test/harness/jobs.ts'

const id = '0198C0DE-0000-4000-8000-00000000000A'
const storedId = id.toLowerCase()

test('a task is queued under the id that was chosen for it, and no second one is', async t => {
  const f = await fresh(t)
  assert.equal((await f.engine.enqueue('mail', 1, { id })).id, storedId)
  assert.deepEqual((await f.engine.task(id)).payload, 1)
  const taken = { code: 'ID_TAKEN', status: 409, details: { id: storedId } }
  await assert.rejects(f.engine.enqueueMany([{ type: 'mail' }, { type: 'mail', id: storedId }]), taken)
  await assert.rejects(f.engine.enqueue('mail', 2, { id, dedupeKey: 'k' }), taken)
  const other = '0198c0de-0000-4000-8000-00000000000b'
  await assert.rejects(
    f.engine.enqueueMany([
      { type: 'mail', id: other },
      { type: 'mail', id: other },
    ]),
    { code: 'ID_TAKEN' },
  )
  assert.equal((await f.engine.tasks()).items.length, 1)
  assert.equal(await workOff(f, 'mail'), 1)
})

test('of many who queue the same id at once one does, and the others are told', async t => {
  const { engine } = await fresh(t)
  const tries = await Promise.allSettled(Array.from({ length: 8 }, (_, n) => engine.enqueue('mail', n, { id })))
  const refused = tries.flatMap(each => (each.status === 'rejected' ? [each.reason.code] : []))
  assert.deepEqual(refused, Array(7).fill('ID_TAKEN'))
  assert.equal((await engine.tasks()).items.length, 1)
})

test('a job is submitted under the id that was chosen for it, and a clone of it has another', async t => {
  const f = await fresh(t)
  const spec = { id, name: 'j', stages: [{ name: 'a', task: 'a' }] }
  assert.equal((await f.engine.submit(spec)).id, storedId)
  await assert.rejects(f.engine.submit(spec), { code: 'ID_TAKEN', details: { id: storedId } })
  assert.equal((await f.engine.tasks()).items.length, 1)
  await workOff(f, 'a', 'failed')
  const clone = await f.engine.retryJob(id, { clone: true })
  assert.notEqual(clone.id, storedId)
  assert.equal(await workOff(f, 'a'), 1)
  assert.equal(await statesOf(f, clone.id), 'succeeded: a succeeded')
})

test('what is no UUID is refused as an id, and nothing is written', async t => {
  const { engine } = await fresh(t)
  for (const bad of ['job-1', '', `${storedId} `, 5 as never]) {
    await assert.rejects(engine.enqueue('mail', 1, { id: bad }), { code: 'OPTION_INVALID' })
    await assert.rejects(engine.submit({ id: bad, name: 'j', stages: [] }), { code: 'SPEC_INVALID' })
  }
  assert.deepEqual([(await engine.tasks()).items, (await engine.jobs()).items], [[], []])
})

test('a request is known again by what was asked for, where what it leads to differs with the time', async t => {
  const { engine } = await fresh(t)
  const asked = { until: 'noon' }
  const call = { idempotencyKey: 'k', asked }
  const [first] = await engine.enqueueMany([{ type: 'mail', softDeadlineSeconds: 10 }], call)
  const [second] = await engine.enqueueMany([{ type: 'mail', softDeadlineSeconds: 9 }], call)
  assert.equal(second!.id, first!.id)
  const other = engine.enqueueMany([{ type: 'mail', softDeadlineSeconds: 9 }], { ...call, asked: { until: 'one' } })
  await assert.rejects(other, { code: 'IDEMPOTENCY_MISMATCH' })
  assert.equal((await engine.tasks()).items.length, 1)
})

test('jobs are listed newest or oldest first also where ids were chosen, page by page', async t => {
  const { engine } = await fresh(t)
  const ids = [
    'ffffffff-aaaa-4aaa-8aaa-aaaaaaaaaaaa',
    undefined,
    '00000000-aaaa-4aaa-8aaa-aaaaaaaaaaaa',
    undefined,
    undefined,
  ]
  for (const [n, chosen] of ids.entries()) {
    await engine.submit({ name: `job ${n}`, stages: [{ name: 'a', task: 'a' }], ...(chosen && { id: chosen }) })
  }
  const listed = async (order: 'newest' | 'oldest') => {
    const names: string[] = []
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await engine.jobs({ order, limit: 2, ...(cursor && { cursor }) })
      names.push(...page.items.map(({ name }) => name))
      cursor = page.next
    }
    return names
  }
  assert.deepEqual(await listed('newest'), ['job 4', 'job 3', 'job 2', 'job 1', 'job 0'])
  assert.deepEqual(await listed('oldest'), ['job 0', 'job 1', 'job 2', 'job 3', 'job 4'])
})
