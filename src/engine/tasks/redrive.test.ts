import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { storyOf, taskIn } from '../../../test/harness/task-in.ts'
import type { ReasonCode } from '../../kernel/decide.ts'

async function deadLetters(run: Fresh, kinds: { queue: string; type?: string; reasonCode?: ReasonCode }[]) {
  const ids: string[] = []
  for (const { reasonCode = 'parse_error', ...options } of kinds) {
    const { id } = await taskIn(run, 'queued', options)
    await run.engine.deadLetter(id, { reasonCode })
    ids.push(id)
  }
  return ids
}

const statesOf = ({ engine }: Fresh, ids: readonly string[]) =>
  Promise.all(ids.map(async id => (await engine.task(id)).state))

test('dead letters are redriven by their ids; those that cannot be are named', async t => {
  const run = await fresh(t)
  const [one, two, three] = await deadLetters(run, [{ queue: 'a' }, { queue: 'a' }, { queue: 'b' }])
  const other = await taskIn(run, 'succeeded')
  const nobody = '01890000-0000-7000-8000-000000000000'
  const ids = [two!, other.id, nobody, one!, one!]
  const answer = await run.engine.redrive({ ids, reason: 'mended' }, { actor: 'user:ada' })
  assert.deepEqual(answer.redriven, [two, one])
  assert.deepEqual(
    answer.refused.map(({ id, code }) => [id, code]),
    [
      [other.id, 'MOVE_REFUSED'],
      [nobody, 'TASK_NOT_FOUND'],
      [one, 'MOVE_REFUSED'],
    ],
  )
  assert.match(answer.refused[0]!.message, /"succeeded"/)
  assert.deepEqual(await statesOf(run, [one!, two!, three!]), ['queued', 'queued', 'dead_lettered'])
  const last = (await run.engine.taskEvents(one!)).items.at(-1)!
  assert.deepEqual([last.actor, last.cause, last.payload], ['user:ada', 'redrive', { reason: 'mended' }])
  const { claimed } = await run.sync({ queues: ['a'], claim: 5 })
  assert.equal(claimed.length, 2)
})

test('dead letters are redriven by filter, oldest first', async t => {
  const run = await fresh(t)
  const ids = await deadLetters(run, [
    { queue: 'a', type: 'x' },
    { queue: 'a', type: 'y' },
    { queue: 'a', type: 'x', reasonCode: 'timeout' },
    { queue: 'b', type: 'x' },
    { queue: 'a', type: 'x' },
  ])
  const picked = async (request: object) =>
    (await run.engine.redrive({ ...request, dryRun: true })).redriven.map(id => ids.indexOf(id))
  assert.deepEqual(await picked({}), [0, 1, 2, 3, 4])
  assert.deepEqual(await picked({ queue: 'a' }), [0, 1, 2, 4])
  assert.deepEqual(await picked({ type: 'x' }), [0, 2, 3, 4])
  assert.deepEqual(await picked({ reasonCode: 'timeout' }), [2])
  assert.deepEqual(await picked({ queue: 'a', type: 'x', reasonCode: 'parse_error' }), [0, 4])
  const { redriven } = await run.engine.redrive({ queue: 'a', type: 'x', reasonCode: 'parse_error' })
  assert.deepEqual(redriven, [ids[0], ids[4]])
  assert.deepEqual(await picked({}), [1, 2, 3])
})

test('a dry run says what would be done and refused, and does nothing', async t => {
  const run = await fresh(t)
  const [one] = await deadLetters(run, [{ queue: 'a' }])
  const other = await taskIn(run, 'running')
  const keyed = await taskIn(run, 'dead_lettered', { dedupeKey: 'k' })
  await run.engine.enqueue('work', null, { queue: keyed.queue, dedupeKey: 'k' })
  const ids = [one!, other.id, keyed.id]
  const dry = await run.engine.redrive({ ids, dryRun: true, payload: 'new' })
  assert.deepEqual(await statesOf(run, ids), ['dead_lettered', 'running', 'dead_lettered'])
  assert.equal((await run.engine.task(one!)).payload, null)
  const wet = await run.engine.redrive({ ids, payload: 'new' })
  assert.deepEqual(dry, { ...wet, id: null, dryRun: true })
  assert.deepEqual(
    wet.refused.map(({ code }) => code),
    ['MOVE_REFUSED', 'DEDUPE_CONFLICT'],
  )
})

test('at a rate, dead letters come back one after the other', async t => {
  const run = await fresh(t)
  const ids = await deadLetters(run, [{ queue: 'a' }, { queue: 'a' }, { queue: 'a' }])
  const { redriven } = await run.engine.redrive({ ids, ratePerSecond: 0.001 })
  assert.deepEqual(redriven, ids)
  const counts: number[] = []
  for (const _ of ids) {
    counts.push((await run.sync({ queues: ['a'], claim: 5 })).claimed.length)
    await run.advance(1000)
  }
  assert.deepEqual(counts, [1, 1, 1])
})

test('a payload may be changed on the way, and the event keeps the old one', async t => {
  const run = await fresh(t)
  for (const payload of [{ to: 'ada' }, null]) {
    const { id, queue } = await taskIn(run, 'dead_lettered', { payload: { to: 'nobody' } })
    await run.engine.redrive({ ids: [id], payload }, { actor: 'user:ada' })
    assert.deepEqual((await storyOf(run, id)).slice(-2), [
      'payload_edited by user:ada: redrive',
      'queued by user:ada: redrive',
    ])
    const edit = (await run.engine.taskEvents(id)).items.at(-2)!
    assert.deepEqual(
      [edit.from, edit.to, edit.payload],
      ['dead_lettered', 'dead_lettered', { before: { to: 'nobody' } }],
    )
    const { claimed } = await run.sync({ queues: [queue], claim: 1 })
    assert.deepEqual(claimed[0]!.payload, payload)
  }
})

test('of two operators who redrive the same letters at once, each letter is redriven by one', async t => {
  const run = await fresh(t)
  const ids = await deadLetters(
    run,
    Array.from({ length: 10 }, () => ({ queue: 'a' })),
  )
  const answers = await Promise.all([run.engine.redrive({ ids }), run.engine.redrive({ queue: 'a' })])
  assert.deepEqual(answers.flatMap(({ redriven }) => redriven).sort(), [...ids].sort())
  for (const id of ids) assert.equal((await run.engine.task(id)).round, 2)
})

test('a redrive takes no more than its limit', async t => {
  const run = await fresh(t)
  const ids = await deadLetters(run, [{ queue: 'a' }, { queue: 'a' }, { queue: 'a' }])
  const { redriven } = await run.engine.redrive({ limit: 2 })
  assert.equal(redriven.length, 2)
  assert.ok(redriven.every(id => ids.includes(id)))
})

test('a redrive with an undefined limit takes all dead letters that match', async t => {
  const run = await fresh(t)
  const ids = await deadLetters(run, [{ queue: 'a' }, { queue: 'a' }])
  const { total } = await run.engine.redrive({ queue: 'a', ...({ limit: undefined } as object) })
  assert.equal(total, ids.length)
})
