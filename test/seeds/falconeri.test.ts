/** Seed 002, Falconeri: the tables of its jobs and datums, its owner check and its babysitter. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rescue } from '../../src/babysitter/rescue.ts'
import type { StageSpec } from '../../src/spec/job-spec.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { begin, movesIn } from '../harness/job-in.ts'
import { claim, say } from '../harness/jobs.ts'

/** A job like those of the dialect: one stage whose datums all run to their end, without heartbeats or delays. */
function submit(
  { engine }: Fresh,
  datums: number,
  { tries = 1, ...spec }: Partial<StageSpec> & { tries?: number } = {},
) {
  const payloads = Array.from({ length: datums }, (_, index) => ({ uri: `s3://in/${index}` }))
  const retry = { attempts: tries, losses: tries, delaySeconds: 0 }
  const settings = { failFast: false, heartbeatSeconds: null, leaseSeconds: 1000, retry, deadLetter: 'never' } as const
  return engine.submit({
    name: 'word-count',
    stages: [{ name: 'main', task: 'datum', payloads, ...settings, ...spec }],
  })
}

const threw = { outcome: 'failed', error: { message: 'exit code 1', stack: 'at main.rs:7' } } as const
const datumsOf = async ({ engine }: Fresh, jobId: string) =>
  (await engine.tasks({ jobId })).items.map(({ state }) => state).sort()

/** The workers' pods vanish, and the babysitter has been watching all the time. */
async function podsVanish(f: Fresh): Promise<void> {
  const { run } = rescue({ beginsBlind: false, now: () => 0 })
  await f.advance(1001)
  await run(f.engine.context)
}

test('falconeri 002, job: (created) → Running with all its datums Ready, or not at all', async t => {
  const f = await fresh(t)
  await assert.rejects(
    f.engine.transaction(async tx => {
      await f.engine.submit({ name: 'j', stages: [{ name: 'main', task: 'datum', payloads: [1, 2] }] }, { tx })
      throw new Error('the inputs cannot be listed')
    }),
    /cannot be listed/,
  )
  assert.deepEqual((await f.engine.jobs()).items, [])
  assert.deepEqual((await f.engine.tasks()).items, [])
  const { id, state } = await submit(f, 3)
  assert.equal(state, 'pending')
  assert.deepEqual(await datumsOf(f, id), ['queued', 'queued', 'queued'])
})

test('falconeri 002, job: Running → Done when all datums succeed, and not while some remain', async t => {
  const f = await fresh(t)
  const { id } = await submit(f, 3)
  const [one, ...others] = await begin(f, 'datum')
  await say(f, [one!], 'succeeded')
  assert.equal((await f.engine.job(id)).state, 'running')
  await say(f, others, 'succeeded')
  assert.equal((await f.engine.job(id)).state, 'succeeded')
})

test('falconeri 002, job: Running → Error when a datum fails permanently, once the last has finished', async t => {
  const f = await fresh(t)
  const { id } = await submit(f, 3)
  const [one] = await claim(f, ['datum'], 1)
  await say(f, [one!], threw)
  assert.equal((await f.engine.job(id)).state, 'running')
  const others = await claim(f, ['datum'])
  assert.equal(others.length, 2)
  await say(f, others, 'succeeded')
  assert.equal((await f.engine.job(id)).state, 'failed')
  assert.deepEqual(await datumsOf(f, id), ['failed', 'succeeded', 'succeeded'])
})

test('falconeri 002, datum: Ready → Running when a worker reserves it, under the name of its pod', async t => {
  const f = await fresh(t)
  await submit(f, 1)
  const { claimed } = await f.engine.sync({ worker: 'pod-1', queues: ['datum'], claim: 1 })
  assert.deepEqual(claimed[0]!.payload, { uri: 's3://in/0' })
  const { owner, state } = await f.engine.task(claimed[0]!.id)
  assert.deepEqual([owner, state], ['pod-1', 'assigned'])
  assert.deepEqual((await f.engine.sync({ worker: 'pod-2', queues: ['datum'], claim: 1 })).claimed, [])
})

test('falconeri 002, datum: Running → Done when its worker reports success', async t => {
  const f = await fresh(t)
  await submit(f, 1)
  const [datum] = await begin(f, 'datum')
  await say(f, [datum!], { outcome: 'succeeded', output: 'wrote 3 files' })
  assert.deepEqual(movesIn(await f.engine.taskEvents(datum!.id)).at(-1), 'running → succeeded')
  assert.equal((await f.engine.task(datum!.id)).output, 'wrote 3 files')
})

test('falconeri 002, datum: Running → Error when its worker reports failure, with its message and backtrace', async t => {
  const f = await fresh(t)
  await submit(f, 1)
  const [datum] = await begin(f, 'datum')
  await say(f, [datum!], threw)
  const { state, error } = await f.engine.task(datum!.id)
  assert.deepEqual([state, error], ['failed', threw.error])
})

test('falconeri 002, datum: Running → Error when its pod vanished, and the job ends with its last datum', async t => {
  const f = await fresh(t)
  const { id } = await submit(f, 2)
  const [one, two] = await begin(f, 'datum')
  await say(f, [one!], 'succeeded')
  await podsVanish(f)
  const { state, error } = await f.engine.task(two!.id)
  assert.deepEqual([state, error!.message], ['failed', 'The worker stopped renewing its lease.'])
  assert.equal((await f.engine.job(id)).state, 'failed')
})

const errors: [how: string, fail: (f: Fresh) => Promise<void>][] = [
  ['a failure', async f => say(f, await begin(f, 'datum'), threw)],
  [
    'a vanished pod',
    async f => {
      await begin(f, 'datum')
      await podsVanish(f)
    },
  ],
]
for (const [how, fail] of errors) {
  test(`falconeri 002, datum: Error → Ready after ${how} while tries remain, then Error for good`, async t => {
    const f = await fresh(t)
    const { id } = await submit(f, 1, { tries: 2 })
    await fail(f)
    assert.deepEqual(await datumsOf(f, id), ['retrying'])
    assert.equal((await f.engine.job(id)).state, 'running')
    await fail(f)
    assert.deepEqual(await datumsOf(f, id), ['failed'])
    assert.equal((await f.engine.job(id)).state, 'failed')
    assert.equal((await claim(f, ['datum'])).length, 0)
  })
}

test('falconeri 002, ownership: a zombie whose datum was given to another pod can report nothing', async t => {
  const f = await fresh(t)
  const { id } = await submit(f, 1, { tries: 2 })
  const [zombie] = await begin(f, 'datum')
  await podsVanish(f)
  const [owner] = await begin(f, 'datum')
  assert.equal(owner!.id, zombie!.id)
  for (const outcome of ['succeeded', 'failed'] as const) {
    const { refused } = await f.sync({ settled: [{ id: zombie!.id, epoch: zombie!.epoch, outcome }] })
    assert.deepEqual(
      refused.map(({ code }) => code),
      ['LEASE_LOST'],
    )
  }
  assert.deepEqual(await datumsOf(f, id), ['running'])
  await say(f, [owner!], 'succeeded')
  assert.equal((await f.engine.job(id)).state, 'succeeded')
})

test('falconeri 002, describe: a job tells how many of its datums are done, in error and left', async t => {
  const f = await fresh(t)
  const { id } = await submit(f, 4)
  const [one, two, three] = await begin(f, 'datum')
  await say(f, [one!, two!], 'succeeded')
  await say(f, [three!], threw)
  const { total, good, bad, percent } = (await f.engine.job(id)).progress
  assert.deepEqual([total, good, bad, percent], [4, 2, 1, 75])
})

test('falconeri 002, retry: a new job has just the datums in error, and the old one stays as it is', async t => {
  const f = await fresh(t)
  const { id } = await submit(f, 3)
  const [one, ...others] = await begin(f, 'datum')
  await say(f, [one!], threw)
  await assert.rejects(f.engine.retryJob(id, { clone: true }), { code: 'MOVE_REFUSED' })
  await say(f, others, 'succeeded')
  const again = await f.engine.retryJob(id, { clone: true })
  assert.deepEqual([again.clonedFrom, again.name, again.progress.total], [id, 'word-count', 1])
  const [datum] = await begin(f, 'datum')
  assert.deepEqual(datum!.payload, one!.payload)
  await say(f, [datum!], 'succeeded')
  assert.equal((await f.engine.job(again.id)).state, 'succeeded')
  assert.equal((await f.engine.job(id)).state, 'failed')
})
