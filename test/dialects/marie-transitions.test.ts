/** Seed 000's table of valid transitions, through Marie's own routes and an executor that uses Pawl's protocol. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endGraces, expireTasks } from '../../src/babysitter/chores.ts'
import { words } from '../../src/dialects/marie/words.ts'
import { isFinal, isGoodFinal, statesOf, wasExecuted } from '../../src/kernel/lifecycle.ts'
import { taskLifecycle } from '../../src/kernel/task.ts'
import { type MarieRig, marieRig } from '../harness/marie-rig.ts'

type Act = (rig: MarieRig, id: string, queue: string) => Promise<unknown>

const dispatched: Act = async (rig, _, queue) => assert.equal((await rig.dispatch(queue)).length, 1)
const ttlExceeded: Act = async rig => {
  await rig.advance(3601)
  await expireTasks.run(rig.engine.context)
}
const stopped: Act = async ({ marie }, id) => assert.deepEqual((await marie.stop(id)).result, 'Job stopped')
const reported =
  (outcome: 'succeeded' | 'skipped' | 'failed' | 'cancelled'): Act =>
  async (rig, id) => {
    const { epoch } = await rig.engine.task(id)
    await rig.report([{ id, epoch } as never], outcome)
  }
const failedFirst: Act = async (rig, id, queue) => {
  await dispatched(rig, id, queue)
  await reported('failed')(rig, id, queue)
  assert.equal(await rig.marie.stateOf(id), 'RETRY')
}
const due: Act = async (rig, id, queue) => {
  await rig.advance(5)
  await dispatched(rig, id, queue)
}

/** How a job gets into a state. */
const into: Record<string, Act> = { CREATED: async () => {}, ACTIVE: dispatched, RETRY: failedFirst }

/** The rows of the table by name, followed by the additions of the text. */
const rows: [from: string, to: string, trigger: string, act: Act, more?: Record<string, unknown>][] = [
  ['CREATED', 'ACTIVE', 'Job scheduled and dispatched', dispatched],
  ['CREATED', 'EXPIRED', 'TTL exceeded before scheduling', ttlExceeded],
  ['CREATED', 'CANCELLED', 'User cancellation', stopped],
  ['ACTIVE', 'COMPLETED', 'Successful execution', reported('succeeded')],
  ['ACTIVE', 'SKIPPED', 'Branch condition not met', reported('skipped')],
  ['ACTIVE', 'RETRY', 'Execution failed, retries remaining', reported('failed')],
  ['ACTIVE', 'FAILED', 'Execution failed, no retries left', reported('failed'), { retry_limit: 0 }],
  ['RETRY', 'ACTIVE', 'Retry scheduled and dispatched', due],
  ['RETRY', 'EXPIRED', 'TTL exceeded during retry wait', ttlExceeded],
  ['RETRY', 'CANCELLED', 'User cancellation', stopped],
  ['ACTIVE', 'EXPIRED', 'not completed within expire_in_seconds', ttlExceeded],
  ['ACTIVE', 'ACTIVE', 'a user asks the executor to stop', stopped],
]

test('marie: every row of the table of valid transitions', async t => {
  const rig = await marieRig(t)
  for (const [number, [from, to, trigger, act, more]] of rows.entries()) {
    await t.test(`${from} → ${to}: ${trigger}`, async () => {
      const queue = `row-${number}`
      const job = { name: queue, data: {}, retry_limit: 2, retry_delay: 5, expire_in_seconds: 3600, ...more }
      const id = await rig.submit(job)
      await into[from]!(rig, id, queue)
      assert.equal(await rig.marie.stateOf(id), from)
      await act(rig, id, queue)
      assert.equal(await rig.marie.stateOf(id), to)
      const { result } = await rig.marie.jobs(`/${to}`)
      assert.ok(result.some(each => each.id === id) && result.every(({ state }) => state === to))
    })
  }
})

test('marie: an executor that is told to stop ends the job as CANCELLED, or it is ended when it does not answer', async t => {
  const rig = await marieRig(t)
  for (const answers of [true, false]) {
    const id = await rig.submit({ name: 'extract', data: {} })
    const [held] = await rig.dispatch('extract')
    await stopped(rig, id, 'extract')
    const beat = { id: held!.id, epoch: held!.epoch }
    const { cancel } = await rig.client.sync({ worker: 'executor', beats: [beat] })
    assert.deepEqual([cancel[0]!.id, cancel[0]!.mode], [id, 'soft'])
    if (answers) await rig.report([held!], 'cancelled')
    else {
      await rig.advance(31)
      await endGraces.run(rig.engine.context)
    }
    assert.equal(await rig.marie.stateOf(id), 'CANCELLED')
  }
})

const ends: Record<string, Act> = {
  COMPLETED: reported('succeeded'),
  SKIPPED: reported('skipped'),
  EXPIRED: ttlExceeded,
  CANCELLED: reported('cancelled'),
  FAILED: reported('failed'),
}

test('marie: what is terminal allows no further transition', async t => {
  const rig = await marieRig(t)
  for (const [state, end] of Object.entries(ends)) {
    await t.test(state, async () => {
      const queue = `ends-${state.toLowerCase()}`
      const id = await rig.submit({ name: queue, data: {}, retry_limit: 0, expire_in_seconds: 3600 })
      const [held] = await rig.dispatch(queue)
      await end(rig, id, queue)
      const before = await rig.marie.job(id)
      assert.equal(before.result.state, state)
      const { http, status, code, message } = await rig.marie.stop(id)
      assert.deepEqual([http, status, code], [409, 'error', 'INVALID_STATE'])
      assert.equal(message, `Job is ${state} and cannot be stopped`)
      assert.deepEqual(await rig.dispatch(queue), [])
      await ttlExceeded(rig, id, queue)
      const other = { id, epoch: held!.epoch, outcome: state === 'SKIPPED' ? 'succeeded' : 'skipped' } as const
      const { refused } = await rig.client.sync({ worker: 'executor', settled: [other] })
      assert.equal(refused[0]!.code, 'LEASE_LOST')
      assert.deepEqual(await rig.marie.job(id), before)
    })
  }
})

test('marie: a cancelled job that is resumed is CREATED again, and runs with fresh retries', async t => {
  const rig = await marieRig(t)
  const id = await rig.submit({ name: 'extract', data: { page: 1 }, retry_limit: 1, retry_delay: 0 })
  await rig.work('extract', 'failed')
  await stopped(rig, id, 'extract')
  assert.equal(await rig.marie.stateOf(id), 'CANCELLED')
  const response = await rig.request(`/v1/tasks/${id}/resume`, { method: 'POST', json: {} })
  assert.equal(response.status, 200)
  assert.equal(await rig.marie.stateOf(id), 'CREATED')
  assert.equal(await rig.work('extract', 'failed'), 1)
  assert.equal(await rig.marie.stateOf(id), 'RETRY')
  assert.equal(await rig.work('extract'), 1)
  assert.equal(await rig.marie.stateOf(id), 'COMPLETED')
})

test('marie: is_terminal, is_successful_terminal, was_executed and terminal_states are those of its document', () => {
  const called = (ask: (state: keyof typeof taskLifecycle.states) => boolean) =>
    new Set(
      (Object.keys(words.task!) as (keyof typeof taskLifecycle.states)[]).filter(ask).map(state => words.task![state]),
    )
  const terminal = new Set(['COMPLETED', 'SKIPPED', 'EXPIRED', 'CANCELLED', 'FAILED'])
  assert.deepEqual(
    called(state => isFinal(taskLifecycle, state)),
    terminal,
  )
  assert.deepEqual(new Set(statesOf(taskLifecycle, 'final').map(state => words.task![state])), terminal)
  assert.deepEqual(
    called(state => isGoodFinal(taskLifecycle, state)),
    new Set(['COMPLETED', 'SKIPPED']),
  )
  const executed = called(state => isFinal(taskLifecycle, state) && wasExecuted(taskLifecycle, state))
  assert.deepEqual(executed, new Set(['COMPLETED', 'FAILED', 'EXPIRED']))
})
