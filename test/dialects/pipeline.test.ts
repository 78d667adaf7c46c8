/** The async pipeline through its own routes: every row of its document’s tables, by name. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jobDeadlines } from '../../src/babysitter/job-chores.ts'
import { startTasks } from '../../src/store/tasks/settle.ts'
import { eventually } from '../harness/eventually.ts'
import type { Job } from './pipeline-client.ts'
import { type Doing, type Rig, rig, type StageName, stageNames } from './pipeline-rig.ts'

const bounded = { timeout: 600_000 }
const all = { enable_evaluation: true, enable_auto_optimize: true }
const every = <T>(value: T) => Object.fromEntries(stageNames.map(name => [name, value])) as Record<StageName, T>
const statusesIn = ({ stage_progress }: Job) =>
  Object.fromEntries(Object.entries(stage_progress).map(([name, { status }]) => [name, status]))

test('transition table', bounded, async t => {
  const r = await rig(t)
  const idle = await rig(t)
  r.work()

  await t.test(
    '[*] → PENDING: a start is answered 202 with a job that waits, and the addresses of its status and stream',
    async () => {
      const { status, body } = await idle.api.start({ enable_evaluation: true })
      assert.deepEqual([status, body.status], [202, 'pending'])
      const { body: job } = await idle.api.status(body.status_url)
      const { id, trace_id, started_at, finished_at, current_stage, stage_progress, errors } = job
      assert.deepEqual([id, trace_id, job.status], [body.job_id, body.trace_id, 'pending'])
      assert.deepEqual([started_at, finished_at, current_stage, stage_progress, errors], [null, null, null, {}, []])
      assert.equal(body.stream_url, `${body.status_url}/stream`)
    },
  )

  await t.test(
    'PENDING → RUNNING: when its first stage starts, started_at is set and the stage is the current one',
    async () => {
      const run = await r.run({}, { ingest: 'hold' })
      await run.held('ingest')
      const job = await eventually('its start is known', async () => {
        const now = await r.api.job(run.id)
        return now.status === 'running' && now
      })
      assert.deepEqual([job.current_stage, job.finished_at], ['ingest', null])
      assert.ok(job.started_at !== null && job.started_at >= job.created_at)
      assert.deepEqual(statusesIn(job), { ingest: 'running' })
      run.letGo('ingest')
      await run.ended()
    },
  )

  await t.test(
    'PENDING → CANCELLED: called off before its first stage starts, it is cancelled at once and none ever does',
    async () => {
      const { body } = await idle.api.start()
      assert.deepEqual((await idle.api.cancel(body.job_id)).body, {
        cancelled: true,
        message: 'Cancellation requested',
      })
      const job = await idle.api.job(body.job_id)
      assert.deepEqual([job.status, job.started_at, job.current_stage], ['cancelled', null, null])
      assert.ok(job.finished_at !== null)
      assert.deepEqual(job.errors, [{ stage: null, message: 'Job was cancelled' }])
      const { items } = await idle.engine.jobTasks(body.job_id)
      assert.deepEqual([...new Set(items.map(({ state }) => state))], ['cancelled'])
    },
  )

  await t.test('RUNNING → COMPLETED: all stages completed', async () => {
    const job = await (await r.run(all)).ended()
    assert.deepEqual([job.status, job.current_stage, job.errors], ['completed', null, []])
    assert.deepEqual(statusesIn(job), every('completed'))
    assert.ok(job.finished_at! >= job.started_at!)
  })

  await t.test('RUNNING → PARTIAL: some stages completed, others failed', async () => {
    const job = await (await r.run(all, { classify: 'throw', evaluation: 'throw' })).ended()
    assert.equal(job.status, 'partial')
    assert.deepEqual(statusesIn(job), { ...every('completed'), classify: 'failed', evaluation: 'failed' })
    assert.deepEqual(job.errors, [
      { stage: 'classify', message: 'classify broke' },
      { stage: 'evaluation', message: 'evaluation broke' },
    ])
  })

  await t.test('RUNNING → FAILED: all stages failed', async () => {
    const job = await (await r.run({}, every<Doing>('throw'))).ended()
    assert.deepEqual([job.status, job.current_stage], ['failed', 'brief'])
    const skipped = { evaluation: 'skipped', optimization: 'skipped' }
    assert.deepEqual(statusesIn(job), { ...every('failed'), ...skipped })
    assert.equal(job.errors.length, 4)
    assert.ok(job.pipeline_run_summary_id !== null, 'the summary is made whatever became of the stages')
  })

  await t.test(
    'RUNNING → CANCELLED: called off while a stage runs, it is told, ends, and is the last that ran',
    async () => {
      const run = await r.run(all, { classify: 'hold' })
      await eventually('it is known to run', async () => (await r.api.job(run.id)).current_stage === 'classify')
      assert.equal((await r.api.cancel(run.id)).body.cancelled, true)
      const job = await run.ended()
      assert.deepEqual([job.status, job.current_stage], ['cancelled', 'classify'])
      assert.ok(job.finished_at !== null)
      assert.deepEqual(statusesIn(job), { ...every('skipped'), ingest: 'completed', classify: 'failed' })
      assert.deepEqual(job.errors, [{ stage: 'classify', message: 'Job was cancelled' }])
      assert.deepEqual(run.ran(), ['ingest', 'classify'])
    },
  )

  const terminal: [status: string, end: (r: Rig) => Promise<Job>][] = [
    ['completed', async r => (await r.run()).ended()],
    ['partial', async r => (await r.run({}, { brief: 'throw' })).ended()],
    ['failed', async r => (await r.run({}, every<Doing>('throw'))).ended()],
    [
      'cancelled',
      async r => {
        const run = await r.run({}, { ingest: 'hold' })
        await r.api.cancel(run.id)
        return run.ended()
      },
    ],
  ]
  for (const [status, end] of terminal) {
    await t.test(
      `${status.toUpperCase()} is terminal: a cancel is answered false with the reason, and changes nothing`,
      async () => {
        const before = await end(r)
        assert.equal(before.status, status)
        const { status: code, body } = await r.api.cancel(before.id)
        assert.deepEqual([code, body], [200, { cancelled: false, reason: `Job is already ${status}` }])
        assert.deepEqual(await r.api.job(before.id), before)
      },
    )
  }
})

test('stage table', bounded, async t => {
  const r = await rig(t)
  r.work()
  const doing: Partial<Record<StageName, Doing>> = { classify: 'partial', neutralize: 'throw' }
  const job = await (await r.run({ enable_auto_optimize: true }, doing)).ended()
  const { ingest, classify, neutralize, optimization } = job.stage_progress

  await t.test('completed: a stage that finished without errors, with what its handler measured', () => {
    const { duration_ms, ...rest } = ingest!
    assert.deepEqual(rest, { status: 'completed', metrics: { total: 2, success: 2 }, errors: [] })
    assert.ok(Number.isInteger(duration_ms) && duration_ms >= 0)
  })

  await t.test('partial: a stage whose handler returned that some of it failed; the job is then partial', () => {
    const { duration_ms: _, ...rest } = classify!
    assert.deepEqual(rest, { status: 'partial', metrics: { total: 2, failed: 1 }, errors: ['classify left one out'] })
    assert.equal(job.status, 'partial')
  })

  await t.test('failed: a stage that threw, with what it threw', () => {
    const { duration_ms: _, ...rest } = neutralize!
    assert.deepEqual(rest, { status: 'failed', metrics: {}, errors: ['neutralize broke'] })
  })

  await t.test('skipped: a stage that was not run, as optimization without evaluation', () => {
    assert.deepEqual(optimization, { status: 'skipped', duration_ms: 0, metrics: {}, errors: [] })
  })

  await t.test('skipped: a stage whose worker skipped it; the job is completed all the same', async () => {
    const ended = await (await r.run({}, { brief: 'skip' })).ended()
    assert.deepEqual([ended.status, ended.stage_progress.brief?.status], ['completed', 'skipped'])
  })

  await t.test('a stage is as long as its handler took', async () => {
    const run = await r.run({}, { ingest: 'hold' })
    await run.held('ingest')
    await eventually('its start is known', async () => (await r.api.job(run.id)).status === 'running')
    await r.advance(90)
    run.letGo('ingest')
    const ended = await run.ended()
    const { duration_ms } = ended.stage_progress.ingest!
    assert.ok(duration_ms >= 90_000 && duration_ms < 150_000, `${duration_ms}`)
  })
})

test('stage table after a cancel', bounded, async t => {
  const r = await rig(t)
  r.work()
  const cancelledDuring = async (name: StageName, doing: Doing) => {
    const run = await r.run(all, { [name]: doing })
    await eventually('it is known to run', async () => (await r.api.job(run.id)).current_stage === name)
    assert.equal((await r.api.cancel(run.id)).body.cancelled, true)
    if (doing !== 'hold') run.letGo(name)
    return run.ended()
  }

  await t.test(
    'completed: a stage that finished although its job was cancelled meanwhile, with its metrics',
    async () => {
      const job = await cancelledDuring('classify', 'persist')
      assert.equal(job.status, 'cancelled')
      assert.deepEqual(statusesIn(job), { ...every('skipped'), ingest: 'completed', classify: 'completed' })
      assert.deepEqual(job.stage_progress.classify?.metrics, { total: 2, success: 2 })
    },
  )

  await t.test('partial: a stage that finished with some errors although its job was cancelled meanwhile', async () => {
    const job = await cancelledDuring('classify', 'persist then partial')
    assert.deepEqual(statusesIn(job), { ...every('skipped'), ingest: 'completed', classify: 'partial' })
  })

  await t.test('failed: a stage that the cancel interrupted; only stages that were not run are skipped', async () => {
    const job = await cancelledDuring('neutralize', 'hold')
    const begun = { ingest: 'completed', classify: 'completed', neutralize: 'failed' }
    assert.deepEqual(statusesIn(job), { ...every('skipped'), ...begun })
  })

  await t.test('failed: a stage that was cancelled before its job knew that it had begun', async () => {
    const idle = await rig(t)
    const { body } = await idle.api.start()
    const [held] = await idle.engine.claims({ worker: 'w', queues: ['ingest'] })
    await startTasks(idle.sql, [held!], ['w'])
    await idle.engine.cancelJob(body.job_id, { mode: 'hard' })
    assert.deepEqual(statusesIn(await idle.api.job(body.job_id)), { ...every('skipped'), ingest: 'failed' })
  })
})

test('stale jobs', bounded, async t => {
  const timedOut = 'Job timed out or was orphaned'

  await t.test('a job that no worker starts within two hours is FAILED, with the words of the document', async () => {
    const r = await rig(t)
    const { body } = await r.api.start()
    await r.advance(7199)
    await jobDeadlines.run(r.engine.context)
    assert.equal((await r.api.job(body.job_id)).status, 'pending')
    await r.advance(2)
    await jobDeadlines.run(r.engine.context)
    const job = await r.api.job(body.job_id)
    assert.deepEqual([job.status, job.errors], ['failed', [{ stage: null, message: timedOut }]])
    assert.deepEqual(statusesIn(job), every('skipped'))
    assert.ok(job.finished_at !== null)
  })

  await t.test('a job that runs for more than two hours is FAILED, however busy it is', async () => {
    const r = await rig(t)
    r.work()
    const run = await r.run({}, { classify: 'hold' })
    await eventually('it is known to run', async () => (await r.api.job(run.id)).current_stage === 'classify')
    await r.advance(7201)
    await jobDeadlines.run(r.engine.context)
    const job = await run.ended()
    assert.deepEqual([job.status, job.errors.at(-1)], ['failed', { stage: 'classify', message: timedOut }])
    assert.deepEqual(statusesIn(job), { ...every('skipped'), ingest: 'completed', classify: 'failed' })
  })
})
