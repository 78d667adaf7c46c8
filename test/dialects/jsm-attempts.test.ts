/** The attempts of a job in the words of Job State Machine v1: one for each claim of the round. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { rescue } from '../../src/babysitter/rescue.ts'
import { served } from '../harness/served.ts'
import { type Job, jsmClient, type Request } from './jsm-client.ts'

async function rigFor(t: TestContext) {
  const run = await served(t)
  const jsm = jsmClient(() => run.server.url)
  const claims = async (): Promise<Job> => (await jsm.claim({ worker: 'w', types: ['mail'] }))!
  return {
    ...run,
    jsm,
    claims,
    running: async (options: object = {}) => {
      await jsm.enqueue({ type: 'mail', backoff: { base_sec: 0 }, ...options })
      const { id } = await claims()
      return jsm.say(id, 'start', { worker: 'w' })
    },
    async loseLease() {
      await run.advance(61)
      await rescue({ beginsBlind: false, now: () => 0 }).run(run.engine.context)
    },
  }
}

const ends: readonly [Request, object, state: string][] = [
  ['succeed', { worker: 'w' }, 'succeeded'],
  ['fail', { worker: 'w', error_class: 'TransientError', message: 'no' }, 'queued'],
  ['fail', { worker: 'w', error_class: 'PermanentError', message: 'no' }, 'failed'],
  ['fail', { worker: 'w', error_class: 'ValidationError', message: 'no' }, 'dead_lettered'],
  ['cancel', { mode: 'hard' }, 'cancelled'],
  ['cancel', { worker: 'w', mode: 'hard' }, 'cancelled'],
  ['dead_letter', { reason_code: 'timeout' }, 'dead_lettered'],
  ['dead_letter', { worker: 'w', reason_code: 'timeout' }, 'dead_lettered'],
]

test('a job that ran once has one attempt, however it ends', async t => {
  const { jsm, running } = await rigFor(t)
  for (const [request, body, state] of ends) {
    const { id, attempts } = await running()
    assert.equal(attempts, 1)
    const ended = await jsm.say(id, request, body)
    assert.deepEqual([ended.state, ended.attempts], [state, 1], request)
    assert.equal((await jsm.job(id)).attempts, 1)
    if (state === 'queued') await jsm.say(id, 'cancel', { mode: 'hard' })
  }
  assert.deepEqual(
    (await jsm.deadLetters()).map(({ attempts }) => attempts),
    [1, 1, 1],
  )
})

test('attempts never fall within a round, also of a job that was lost before its start', async t => {
  const { jsm, claims, loseLease } = await rigFor(t)
  const { id } = await jsm.enqueue({ type: 'mail', backoff: { base_sec: 0 } })
  const seen: number[] = []
  const recordAttempts = async () => seen.push((await jsm.job(id)).attempts)
  await recordAttempts()
  await claims()
  await recordAttempts()
  await loseLease()
  await recordAttempts()
  await claims()
  await recordAttempts()
  await jsm.say(id, 'start', { worker: 'w' })
  await jsm.say(id, 'fail', { worker: 'w', error_class: 'TransientError', message: 'no' })
  await recordAttempts()
  await jsm.say(id, 'cancel', { mode: 'hard' })
  await recordAttempts()
  assert.deepEqual(seen, [0, 1, 1, 2, 2, 2])
})

test('what was set aside before anybody had it has no attempts, and one that is retried begins anew', async t => {
  const { jsm, running, claims } = await rigFor(t)
  const { id: untouched } = await jsm.enqueue({ type: 'letter' })
  await jsm.say(untouched, 'dead_letter', { reason_code: 'timeout' })
  const { id } = await running({ max_attempts: 1 })
  await jsm.say(id, 'fail', { worker: 'w', error_class: 'TransientError', message: 'no' })
  const letters = new Map((await jsm.deadLetters()).map(({ job_id, attempts }) => [job_id, attempts]))
  assert.deepEqual([letters.get(untouched), letters.get(id)], [0, 1])
  assert.equal((await jsm.retry(id)).attempts, 0)
  assert.equal((await claims()).attempts, 1)
})

test('a job whose workers always vanish before they start it reaches the DLQ', async t => {
  const { jsm, claims, loseLease } = await rigFor(t)
  const { id } = await jsm.enqueue({ type: 'mail', max_attempts: 1 })
  for (let n = 1; n <= 10; n++) {
    assert.equal((await claims()).attempts, n)
    await loseLease()
  }
  assert.equal((await jsm.job(id)).state, 'dead_lettered')
  const [letter] = await jsm.deadLetters()
  assert.deepEqual([letter!.job_id, letter!.reason_code, letter!.attempts], [id, 'infrastructure_failure', 10])
})
