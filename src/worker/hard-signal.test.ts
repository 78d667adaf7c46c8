/** A cancel reaches handlers twice: first they should stop, then it is too late. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { runTask } from '../testing/run-task.ts'
import { interrupt, newAttempt, runAttempt } from './attempt.ts'
import { defineTask, type TaskContext } from './define-task.ts'
import { Failed, GiveUp, type Interrupted } from './errors.ts'
import { defaultName } from './worker.ts'

const noCalls = {
  saveCheckpoint: async () => {},
  completeIn: async () => {},
  reportFiles: async () => {},
  async *filesOf() {},
  jobOfStage: () => Promise.reject(new Error('It belongs to no job.')),
}

const bounded = { timeout: 600_000 }

function held() {
  const claimed = {
    id: 'a',
    epoch: 1,
    type: 'work',
    payload: null,
    attempt: 1,
    checkpoint: null,
    careful: false,
    leaseUntil: '',
    leaseSeconds: 60,
    heartbeatSeconds: null,
    timeoutSeconds: null,
    correlationId: null,
    jobId: null,
    stageId: null,
    traceparent: null,
  }
  return newAttempt(claimed, performance.now())
}

test('a cancel is soft until its grace is over, and then the hard signal says so', bounded, async t => {
  const one = held()
  // A pending grace period does not keep the process alive, but a worker does.
  const alive = setInterval(() => {}, 1000)
  t.after(() => clearInterval(alive))
  const aborts: string[] = []
  const settled = runAttempt(
    one,
    async (_, ctx: TaskContext) => {
      const soft = once(ctx.signal, 'abort').then(() => aborts.push(`soft, hard: ${ctx.hardSignal.aborted}`))
      await Promise.all([soft, once(ctx.hardSignal, 'abort')])
      aborts.push(`hard: ${(ctx.hardSignal.reason as Interrupted).reason}`)
      throw ctx.hardSignal.reason
    },
    noCalls,
  )
  interrupt(one, 'cancelled', 0.05)
  assert.equal((await settled).outcome, 'cancelled')
  assert.deepEqual(aborts, ['soft, hard: false', 'hard: cancelled'])
})

for (const reason of ['lease-lost', 'timeout', 'shutdown'] as const) {
  test(`${reason} is hard from the start, and after a cancel`, bounded, async () => {
    for (const before of [[], ['cancelled']] as const) {
      const one = held()
      const seen = runAttempt(one, (_, { hardSignal }) => once(hardSignal, 'abort').then(() => {}), noCalls)
      for (const earlier of before) interrupt(one, earlier)
      interrupt(one, reason)
      assert.equal((await seen).outcome, 'succeeded')
      assert.deepEqual([one.hardInterrupted, one.interrupted], [reason, before[0] ?? reason])
    }
  })
}

test('whoever asks for the hard signal late finds it aborted', bounded, async () => {
  const one = held()
  interrupt(one, 'lease-lost')
  const { output } = await runAttempt(one, async (_, ctx) => ctx.hardSignal.aborted, noCalls)
  assert.equal(output, true)
})

test('an error carries the step that was under way, and a reason where the handler gave one', bounded, async () => {
  const work = defineTask({
    type: 'work',
    handler(how: unknown, ctx: TaskContext) {
      ctx.step('fetch')
      if (how === 'plain') throw new Error('plain')
      ctx.step('output')
      throw how === 'for good' ? new GiveUp('never') : new Failed('infrastructure_failure', 'no room')
    },
  })
  assert.equal((await runTask(work, 'plain')).error?.step, 'fetch')
  const { error } = await runTask(work, 'for good')
  assert.deepEqual([error?.permanent, error?.step], [true, 'output'])
  const full = await runTask(work, 'full')
  assert.deepEqual(
    [full.outcome, full.error?.reasonCode, full.error?.step, full.error?.permanent],
    ['failed', 'infrastructure_failure', 'output', undefined],
  )
})

test('in Kubernetes a worker is called by its node and pod; elsewhere by its host and process', () => {
  assert.equal(defaultName({ NODE_NAME: 'n', POD_NAME: 'p' }), 'n/p')
  for (const env of [{ NODE_NAME: 'n' }, { POD_NAME: 'p' }, { NODE_NAME: '', POD_NAME: 'p' }]) {
    assert.match(defaultName(env), new RegExp(`-${process.pid}-[0-9a-f]{4}$`))
  }
})
