/** Jobs of thousands of tasks: operations on many tasks run in batches, but look like one to callers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobSpec } from '../../src/spec/job-spec.ts'
import { dice, seed } from '../harness/dice.ts'
import { eventually } from '../harness/eventually.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { claim, reportOf, say, stageOf, statesOf, workOff } from '../harness/jobs.ts'

const bounded = { timeout: 600_000 }
const upTo = (count: number) => Array.from({ length: count }, (_, n) => n)

async function submit({ engine }: Fresh, stages: JobSpec['stages'] & object, more: Partial<JobSpec> = {}) {
  return (await engine.submit({ name: 'j', stages, ...more })).id
}

/** The number of tasks of a job in each state. */
async function countsOf({ sql }: Fresh, jobId: string) {
  const rows = await sql<{ state: string; count: number }>`
    select state, count(*)::int as count from pawl.task where job_id = ${jobId}::uuid group by state order by state`
  return Object.fromEntries(rows.map(({ state, count }) => [state, count]))
}

/** The largest number of rows changed by one transaction, as recorded in the tasks' rows. */
async function largestBatch({ sql }: Fresh, jobId: string): Promise<number> {
  const [row] = await sql<{ most: number }>`
    select max(n)::int as most
      from (select count(*) as n from pawl.task where job_id = ${jobId}::uuid group by xmin) as batches`
  return row!.most
}

test('a job of 12,000 tasks is seen when all of it is there, and can be cancelled whole', bounded, async t => {
  const f = await fresh(t)
  const seen = new Set<string>()
  let isDone = false
  const watching = (async () => {
    while (!isDone) {
      for (const { id } of (await f.engine.jobs()).items) seen.add(`${id} ${JSON.stringify(await countsOf(f, id))}`)
      assert.equal((await claim(f, ['a'], 1)).length, 0, 'nothing is claimed before it is seen')
      await new Promise(setImmediate)
    }
  })()
  const submitting = submit(f, [
    { name: 'gate', gate: true },
    { name: 'a', task: 'a', payloads: upTo(12_000) },
    { name: 'b', task: 'b' },
  ])
  const id = await submitting.finally(() => {
    isDone = true
  })
  await watching
  assert.ok([...seen].every(each => each === `${id} {"blocked":12001}`))
  assert.deepEqual(await countsOf(f, id), { blocked: 12_001 })
  await f.engine.approve((await stageOf(f, id, 'gate')).id)
  assert.deepEqual(await countsOf(f, id), { blocked: 1, queued: 12_000 })
  assert.ok((await largestBatch(f, id)) <= 1000)
  const [one] = await claim(f, ['a'], 1)
  await f.engine.cancelJob(id)
  assert.deepEqual(await countsOf(f, id), { assigned: 1, cancelled: 12_000 })
  assert.ok((await largestBatch(f, id)) <= 1001)
  assert.equal((await claim(f, ['a', 'b'])).length, 0)
  await say(f, [one!], 'succeeded')
  assert.equal(await statesOf(f, id), 'cancelled: gate succeeded, a cancelled, b cancelled')
})

test('12,000 tasks that may start at once can be claimed as soon as the job is there', bounded, async t => {
  const f = await fresh(t)
  const id = await submit(f, [{ name: 'a', task: 'a', payloads: upTo(12_000) }])
  const { progress, state } = await f.engine.job(id)
  assert.deepEqual([state, progress.total], ['pending', 12_000])
  assert.equal((await claim(f, ['a'], 1000)).length, 1000)
  await f.engine.cancelJob(id, { mode: 'hard' })
  assert.deepEqual(await countsOf(f, id), { cancelled: 12_000 })
  assert.equal(await statesOf(f, id), 'cancelled: a cancelled')
})

test('a middle stage of 3,000 blocked tasks opens before the answer to the settle that opens it', bounded, async t => {
  const f = await fresh(t)
  const id = await submit(f, [
    { name: 'a', task: 'a' },
    { name: 'b', task: 'b', payloads: upTo(3000) },
    { name: 'c', task: 'c' },
  ])
  assert.deepEqual(await countsOf(f, id), { blocked: 3001, queued: 1 })
  await workOff(f, 'a')
  assert.deepEqual(await countsOf(f, id), { blocked: 1, queued: 3000, succeeded: 1 })
  assert.ok((await largestBatch(f, id)) <= 1000)
  for (const _ of [1, 2, 3]) assert.equal(await workOff(f, 'b'), 1000)
  assert.equal(await workOff(f, 'c'), 1)
  assert.equal(await statesOf(f, id), 'succeeded: a succeeded, b succeeded, c succeeded')
})

test(
  'a middle stage of 3,000 blocked tasks is passed over before the answer, and what follows opens',
  bounded,
  async t => {
    const f = await fresh(t)
    const id = await submit(f, [
      { name: 'a', task: 'a' },
      { name: 'b', task: 'b', payloads: upTo(3000), when: 'stages.a.output.go' },
      { name: 'c', task: 'c' },
    ])
    await workOff(f, 'a', { outcome: 'succeeded', output: { go: false } })
    assert.deepEqual(await countsOf(f, id), { queued: 1, skipped: 3000, succeeded: 1 })
    assert.equal(await statesOf(f, id), 'running: a succeeded, b skipped, c pending')
  },
)

test(
  'a first stage of 3,000 tasks with a condition is open, or passed over, when the submit is answered',
  bounded,
  async t => {
    const f = await fresh(t)
    const stage = { name: 'a', task: 'a', payloads: upTo(3000), when: 'input.go' }
    const open = await submit(f, [stage], { input: { go: true } })
    assert.deepEqual(await countsOf(f, open), { queued: 3000 })
    const over = await submit(f, [stage], { input: { go: false } })
    assert.equal(await statesOf(f, over), 'succeeded: a skipped')
  },
)

test('a cancel with an idempotency key calls off 3,000 tasks as one without does', bounded, async t => {
  const f = await fresh(t)
  const id = await submit(f, [{ name: 'a', task: 'a', payloads: upTo(3000) }])
  await f.engine.cancelJob(id, { idempotencyKey: 'k' })
  assert.deepEqual(await countsOf(f, id), { cancelled: 3000 })
  assert.equal(await statesOf(f, id), 'cancelled: a cancelled')
})

test('one task that is set aside stops a stage of 3,000', bounded, async t => {
  const f = await fresh(t)
  const id = await submit(f, [{ name: 'a', task: 'a', payloads: upTo(3000) }])
  const [one] = (await f.engine.tasks({ jobId: id, limit: 1 })).items
  await f.engine.deadLetter(one!.id, { reasonCode: 'policy_violation' })
  assert.equal(await statesOf(f, id), 'failed: a failed')
})

test('a retry brings back 2,000 bad tasks, and leaves alone what a handler had skipped', bounded, async t => {
  const f = await fresh(t)
  const id = await submit(f, [{ name: 'a', task: 'a', payloads: upTo(2010), failFast: false }])
  for (const _ of [1, 2]) assert.equal(await workOff(f, 'a', 'failed'), 1000)
  assert.equal(await workOff(f, 'a', 'skipped'), 10)
  assert.equal(await statesOf(f, id), 'failed: a failed')
  await f.engine.retryJob(id)
  assert.deepEqual(await countsOf(f, id), { queued: 2000, skipped: 10 })
  for (const _ of [1, 2]) assert.equal(await workOff(f, 'a'), 1000)
  assert.equal(await statesOf(f, id), 'succeeded: a succeeded')
})

test('no claim that begins after the answer to a pause gets anything, while many claim at once', bounded, async t => {
  const f = await fresh(t)
  const id = await submit(f, [{ name: 'a', task: 'a', payloads: upTo(2000) }])
  /** The number of the pause, while there is one. */
  let pause: number | undefined
  let isOver = false
  const late: number[] = []
  const claimer = async () => {
    let claimed = 0
    while (!isOver) {
      const pauseBefore = pause
      const tasks = await claim(f, ['a'], 5)
      // A claim that began in a pause may be carried out after it.
      if (pauseBefore !== undefined && pauseBefore === pause) late.push(tasks.length)
      await say(f, tasks, 'succeeded')
      claimed += tasks.length
    }
    return claimed
  }
  const claimers = [claimer(), claimer(), claimer(), claimer()]
  for (let round = 0; round < 5; round++) {
    await f.engine.pauseJob(id)
    pause = round
    const { progress } = await f.engine.job(id)
    while (late.length < 8 * (round + 1)) await new Promise(setImmediate)
    pause = undefined
    assert.ok(progress.good <= (await f.engine.job(id)).progress.good, 'what was in hand is recorded')
    await f.engine.resumeJob(id)
  }
  isOver = true
  const claimed = (await Promise.all(claimers)).reduce((sum, each) => sum + each, 0)
  assert.ok(claimed > 0)
  assert.deepEqual(new Set(late), new Set([0]))
  assert.equal((await f.engine.job(id)).progress.good, claimed)
})

/** A request that came too late is not an error. */
const refused = (error: { code?: string }) => assert.equal(error.code, 'MOVE_REFUSED', String(error))

test('while workers settle and operators interfere, all at once, every job comes to its end', bounded, async t => {
  const f = await fresh(t)
  const chance = dice(seed)
  const { engine } = f
  const jobs: string[] = []
  for (const _ of upTo(6)) {
    const common = { payloads: upTo(30), tolerate: { percent: 50 }, retry: { delaySeconds: 0 } }
    const stages: JobSpec['stages'] = [
      { name: 'a', task: 'w', ...common },
      { name: 'b', task: 'w', needs: [], ...common, onFailure: 'continue' },
      { name: 'c', task: 'w', needs: ['a', 'b'], ...common },
    ]
    jobs.push(await submit(f, stages))
  }
  let isOver = false
  const worker = async () => {
    while (!isOver) {
      for (const task of await claim(f, ['w'], 4)) {
        const words = ['succeeded', 'succeeded', 'succeeded', 'failed', 'released', 'partial', 'skipped'] as const
        const { id, epoch } = task
        await f.sync({ settled: [{ id, epoch, ...reportOf(words[chance.below(words.length)]!) }] })
      }
    }
  }
  const meddle = async (n: number) => {
    const id = jobs[chance.below(jobs.length)]!
    const stage = (await engine.job(id)).stages[chance.below(3)]!
    const requests = [
      () => engine.pauseJob(id),
      () => engine.resumeJob(id),
      () => engine.hold(stage.id),
      () => engine.approve(stage.id, { actor: `${n}` }),
      () => engine.retryStage(stage.id),
      () => engine.retryJob(id),
      () => engine.cancelStage(stage.id, { mode: n % 2 === 0 ? 'soft' : 'hard' }),
      () => engine.cancelJob(id, { mode: n % 2 === 0 ? 'soft' : 'hard' }),
    ]
    await requests[chance.below(requests.length)]!().catch(refused)
  }
  const workers = [worker(), worker(), worker()]
  const operator = async () => {
    for (const n of upTo(60)) await meddle(n)
  }
  await Promise.all([operator(), operator()])
  for (const id of jobs) {
    const { state, endedAt } = await engine.job(id)
    if (endedAt === null && state !== 'stopping') await engine.cancelJob(id).catch(refused)
  }
  await eventually('all have ended', async () => (await engine.jobs()).items.every(({ endedAt }) => endedAt !== null))
  isOver = true
  await Promise.all(workers)
  for (const id of jobs) assert.equal((await engine.job(id)).progress.percent, 100)
})
