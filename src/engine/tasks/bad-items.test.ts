import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { taskIn } from '../../../test/harness/task-in.ts'
import type { ProblemCode } from '../../kernel/problem.ts'
import type { BeatOfTask, SettledTask, StartedTask, SyncRequest } from '../../protocol/tasks/sync.ts'

const nul = String.fromCharCode(0)
const loneSurrogate = String.fromCharCode(0xdc00)
const cycle: unknown[] = []
cycle.push(cycle)

const badSettles: [what: string, item: object, code: ProblemCode][] = [
  ['a NUL in the output', { outcome: 'succeeded', output: { text: nul } }, 'PAYLOAD_INVALID'],
  ['half a surrogate in the output', { outcome: 'succeeded', output: loneSurrogate }, 'PAYLOAD_INVALID'],
  ['a cycle in the output', { outcome: 'succeeded', output: cycle }, 'PAYLOAD_INVALID'],
  ['a bigint in the output', { outcome: 'succeeded', output: 1n }, 'PAYLOAD_INVALID'],
  ['an output over the limit', { outcome: 'succeeded', output: 'x'.repeat(2000) }, 'PAYLOAD_TOO_LARGE'],
  ['a NUL in the error', { outcome: 'failed', error: { message: nul } }, 'PAYLOAD_INVALID'],
  [
    'half a surrogate in the stack',
    { outcome: 'failed', error: { message: 'x', stack: loneSurrogate } },
    'PAYLOAD_INVALID',
  ],
  [
    'an unknown reasonCode',
    { outcome: 'dead_lettered', error: { message: 'x', reasonCode: 'bored' } },
    'OPTION_INVALID',
  ],
  ['a negative delay', { outcome: 'failed', error: { message: 'x', retryInSeconds: -1 } }, 'OPTION_INVALID'],
  ['an unknown field of the error', { outcome: 'failed', error: { massage: 'x' } }, 'OPTION_INVALID'],
  ['an error that is a text', { outcome: 'failed', error: 'x' }, 'OPTION_INVALID'],
  ['a NUL in the reason', { outcome: 'skipped', reason: nul }, 'OPTION_INVALID'],
  ['tasks that a failed attempt makes', { outcome: 'failed', spawn: [{ payload: 1 }] }, 'OPTION_INVALID'],
  ['tasks that an attempt makes and gives back', { outcome: 'released', spawn: [{ payload: 1 }] }, 'OPTION_INVALID'],
  ['an unknown outcome', { outcome: 'finished' }, 'OPTION_INVALID'],
  ['no outcome', {}, 'OPTION_INVALID'],
  ['an unknown field', { outcome: 'succeeded', result: 1 }, 'OPTION_UNKNOWN'],
  ['an epoch that is no number', { outcome: 'succeeded', epoch: 'one' }, 'OPTION_INVALID'],
  ['an epoch beyond all epochs', { outcome: 'succeeded', epoch: 2 ** 40 }, 'OPTION_INVALID'],
  ['an id that is none', { outcome: 'succeeded', id: 'x' }, 'TASK_NOT_FOUND'],
]

/** Three tasks that a worker has started. The report on the middle one is invalid. */
async function threeHeldTasks(run: Fresh, state: 'assigned' | 'running') {
  const [one, bad, two] = [await taskIn(run, state), await taskIn(run, state), await taskIn(run, state)]
  return { one: lease(one), bad: lease(bad), two: lease(two) }
}
const lease = ({ id, epoch }: { id: string; epoch: number }) => ({ id, epoch })

for (const state of ['assigned', 'running'] as const) {
  test(`a bad settle is refused alone: its task stays ${state}, its neighbours end`, async t => {
    const run = await fresh(t, { maxPayloadBytes: 1000 })
    for (const [what, item, code] of badSettles) {
      const { one, bad, two } = await threeHeldTasks(run, state)
      const good = { outcome: 'succeeded', output: 'done' } as const
      const settled = [{ ...one, ...good }, { ...bad, ...item } as SettledTask, { ...two, ...good }]
      const { refused } = await run.sync({ settled })
      assert.deepEqual(
        refused.map(refusal => [refusal.id, refusal.code]),
        [[settled[1]!.id, code]],
        what,
      )
      assert.ok(refused[0]!.message.length > 20)
      const states = await Promise.all([one, bad, two].map(async ({ id }) => (await run.engine.task(id)).state))
      assert.deepEqual(states, ['succeeded', state, 'succeeded'], what)
    }
  })
}

test('a bad beat is refused alone: its neighbours are renewed', async t => {
  const run = await fresh(t)
  const odd: [object, ProblemCode][] = [
    [{ progress: nul }, 'PAYLOAD_INVALID'],
    [{ checkpoint: cycle }, 'PAYLOAD_INVALID'],
    [{ progres: 1 }, 'OPTION_UNKNOWN'],
    [{ epoch: 1.5 }, 'OPTION_INVALID'],
  ]
  for (const [item, code] of odd) {
    const { one, bad, two } = await threeHeldTasks(run, 'running')
    await run.advance(1)
    const beats = [{ ...one, progress: 1 }, { ...bad, ...item } as BeatOfTask, { ...two, progress: 2 }]
    const { refused } = await run.sync({ beats })
    assert.deepEqual(
      refused.map(refusal => [refusal.id, refusal.code]),
      [[bad.id, code]],
    )
    const progress = await Promise.all([one, bad, two].map(async ({ id }) => (await run.engine.task(id)).progress))
    assert.deepEqual(progress, [1, null, 2])
  }
})

test('a bad start is refused alone: its neighbours start', async t => {
  const run = await fresh(t)
  for (const item of [{ agoMs: -1 }, { agoMs: 'a while' }, { agoMs: 1e300 }]) {
    const { one, bad, two } = await threeHeldTasks(run, 'assigned')
    const { refused } = await run.sync({ started: [one, { ...bad, ...item } as StartedTask, two] })
    assert.deepEqual(
      refused.map(refusal => [refusal.id, refusal.code]),
      [[bad.id, 'OPTION_INVALID']],
    )
    const states = await Promise.all([one, bad, two].map(async ({ id }) => (await run.engine.task(id)).state))
    assert.deepEqual(states, ['running', 'assigned', 'running'])
  }
})

test('an item that only the database can refuse does not take its neighbours down', async t => {
  const run = await fresh(t)
  const { one, bad, two } = await threeHeldTasks(run, 'assigned')
  await run.sql.script(`
    create function pawl.raise() returns trigger language plpgsql as 'begin raise exception ''not this one''; end';
    create trigger not_this_one before update on pawl.task for each row when (new.id = '${bad.id}')
      execute function pawl.raise()`)
  const settled = [one, bad, two].map(held => ({ ...held, outcome: 'succeeded' as const }))
  const { refused } = await run.sync({ settled })
  assert.deepEqual(
    refused.map(({ id, code }) => [id, code]),
    [[bad.id, 'PAYLOAD_INVALID']],
  )
  assert.match(refused[0]!.message, /not this one/)
  const states = await Promise.all([one, bad, two].map(async ({ id }) => (await run.engine.task(id)).state))
  assert.deepEqual(states, ['succeeded', 'assigned', 'succeeded'])
})

test('a sync that is wrong as a whole does nothing of what it asks', async t => {
  const run = await fresh(t)
  const task = await taskIn(run, 'running')
  await run.engine.enqueue('a', null)
  const good: Partial<SyncRequest> = { queues: ['a'], claim: 1, settled: [{ ...lease(task), outcome: 'succeeded' }] }
  const odd: object[] = [
    { claim: -1 },
    { claim: 1001 },
    { claim: 1.5 },
    { waitSeconds: -1 },
    { waitSeconds: 3600 },
    { session: 'me' },
    { session: '-'.repeat(36) },
    { syncId: nul },
    { queues: [nul] },
    { queues: 'a' },
    { worker: nul },
    { worker: undefined },
    { beats: [null] },
    { started: {} },
  ]
  for (const item of odd) {
    await assert.rejects(
      run.sync({ ...good, ...item } as SyncRequest),
      { code: 'OPTION_INVALID' },
      JSON.stringify(item),
    )
  }
  assert.equal((await run.engine.task(task.id)).state, 'running')
  assert.equal((await run.engine.queues()).items.find(({ queue }) => queue === 'a')?.due, 1)
})
