/** Seed 001's rows of jobs and stages: what is allowed, and each ❌ ILLEGAL one with its code. */
import assert from 'node:assert/strict'
import type { Served } from '../harness/served.ts'
import type { Jobnik } from './jobnik-client.ts'
import {
  begin,
  illegal,
  jobIn,
  jobStatuses,
  oneStage,
  type Rows,
  someType,
  stageIn,
  stageStatuses,
  table,
  work,
} from './jobnik-in.ts'

/** The statuses that a user may give a job. All others are refused. */
const granted: Record<string, readonly string[]> = {
  PENDING: ['PAUSED'],
  PAUSED: ['PENDING', 'IN_PROGRESS'],
  ABORTED: ['PENDING', 'IN_PROGRESS', 'PAUSED'],
}

const byUsers: Rows = Object.fromEntries(
  Object.entries(granted).flatMap(([to, from]) =>
    jobStatuses.map(status => {
      const isGranted = from.includes(status)
      const row = isGranted ? `${status} → ${to} by a user` : `❌ ${status} → ${to} is ILLEGAL`
      return [
        row,
        async (jobnik: Jobnik) => {
          const { jobId } = await jobIn(jobnik, status)
          const before = await jobnik.job(jobId)
          const answer = await jobnik.setJob(jobId, to)
          if (isGranted) {
            assert.deepEqual([answer.status, answer.body], [200, { code: 'JOB_MODIFIED_SUCCESSFULLY' }])
            return assert.equal((await jobnik.job(jobId)).status, to)
          }
          assert.deepEqual([answer.status, answer.body], [400, illegal('JOB', status, to)])
          assert.deepEqual(await jobnik.job(jobId), before)
        },
      ]
    }),
  ),
)

table('seed 001, jobs, user-controlled: PENDING, PAUSED and ABORTED from where they are legal, and from nowhere else', {
  ...byUsers,
  'PENDING explicitly starts a job that was only created': async (jobnik, { engine }) => {
    const { id } = await engine.submit({ name: 'images', start: false, stages: [{ name: 'a', task: someType() }] })
    assert.equal((await jobnik.setJob(id, 'PENDING')).status, 200)
    assert.equal((await engine.job(id)).state, 'pending')
  },
  '❌ IN_PROGRESS, COMPLETED and FAILED cannot be set by hand, from any status': async jobnik => {
    for (const from of jobStatuses) {
      const { jobId } = await jobIn(jobnik, from)
      for (const to of ['IN_PROGRESS', 'COMPLETED', 'FAILED', 'CREATED']) {
        const { status, body } = await jobnik.setJob(jobId, to)
        assert.deepEqual([status, body.code], [400, 'VALIDATION_ERROR'], `${from} → ${to}`)
      }
      assert.equal((await jobnik.job(jobId)).status, from)
    }
  },
})

table('seed 001, jobs, system-controlled', {
  'CREATED → PENDING when the job is created': async jobnik => {
    assert.equal((await jobnik.createJob()).status, 'PENDING')
  },
  'PENDING → IN_PROGRESS when the first task in the first stage starts': async jobnik => {
    const { jobId, type } = await oneStage(jobnik)
    assert.equal((await jobnik.job(jobId)).status, 'PENDING')
    await begin(jobnik, type)
    assert.equal((await jobnik.job(jobId)).status, 'IN_PROGRESS')
  },
  'IN_PROGRESS → COMPLETED when all stages complete': async jobnik => {
    const { jobId, type } = await oneStage(jobnik)
    const second = await jobnik.createStage(jobId, someType())
    await jobnik.createTasks(second.id, [{ data: {} }])
    await work(jobnik, type)
    const half = await jobnik.job(jobId)
    assert.deepEqual([half.status, half.percentage], ['IN_PROGRESS', 50])
    await work(jobnik, second.type)
    const { status, percentage } = await jobnik.job(jobId)
    assert.deepEqual([status, percentage], ['COMPLETED', 100])
  },
  'IN_PROGRESS → FAILED when a stage fails': async jobnik => {
    const { jobId, type } = await oneStage(jobnik)
    await work(jobnik, type, 'FAILED')
    assert.equal((await jobnik.job(jobId)).status, 'FAILED')
  },
})

/** The previous stage is checked first, whatever the status of the stage itself. */
const tooEarly = { message: 'Previous stage is not COMPLETED', code: 'ILLEGAL_STAGE_STATUS_TRANSITION' }

table('seed 001, stages, user-controlled: PENDING from WAITING, and from nowhere else', {
  ...Object.fromEntries(
    stageStatuses.map(from => {
      const isFine = from === 'WAITING' || from === 'PENDING'
      const row = isFine ? `${from} → PENDING by a user` : `❌ ${from} → PENDING is ILLEGAL`
      return [
        row,
        async (jobnik: Jobnik) => {
          const { stage, type } = await stageIn(jobnik, from)
          if (from === 'WAITING') assert.equal(await jobnik.dequeue(type), null)
          const answer = await jobnik.setStage(stage.id, 'PENDING')
          if (isFine) {
            assert.deepEqual([answer.status, answer.body], [200, { code: 'STAGE_MODIFIED_SUCCESSFULLY' }])
            assert.equal((await jobnik.stage(stage.id)).status, 'PENDING')
            return void (await begin(jobnik, type))
          }
          const isTooEarly = from === 'CREATED' || from === 'ABORTED'
          assert.deepEqual(
            [answer.status, answer.body],
            [400, isTooEarly ? tooEarly : illegal('STAGE', from, 'PENDING')],
          )
          assert.equal((await jobnik.stage(stage.id)).status, from)
        },
      ]
    }),
  ),
  '❌ WAITING → PENDING is ILLEGAL while the stage before it is not COMPLETED': async jobnik => {
    const { jobId, type } = await oneStage(jobnik)
    const gated = await jobnik.createStage(jobId, someType(), { startAsWaiting: true })
    assert.equal(gated.status, 'WAITING')
    const early = await jobnik.setStage(gated.id, 'PENDING')
    assert.deepEqual([early.status, early.body], [400, tooEarly])
    await work(jobnik, type)
    assert.equal((await jobnik.stage(gated.id)).status, 'WAITING')
    assert.equal((await jobnik.setStage(gated.id, 'PENDING')).status, 200)
    assert.equal((await jobnik.stage(gated.id)).status, 'PENDING')
  },
  '❌ IN_PROGRESS, COMPLETED, FAILED and ABORTED cannot be set by hand, from any status': async jobnik => {
    for (const from of stageStatuses) {
      const { stage } = await stageIn(jobnik, from)
      for (const to of ['IN_PROGRESS', 'COMPLETED', 'FAILED', 'ABORTED', 'WAITING', 'CREATED']) {
        const { status, body } = await jobnik.setStage(stage.id, to)
        assert.deepEqual([status, body.code], [400, 'VALIDATION_ERROR'], `${from} → ${to}`)
      }
      assert.equal((await jobnik.stage(stage.id)).status, from)
    }
  },
})

table('seed 001, stages, system-controlled', {
  'CREATED → PENDING at once if it is the first, else when the one before it is COMPLETED': async jobnik => {
    const { jobId, type, stage } = await oneStage(jobnik)
    const next = await jobnik.createStage(jobId, someType())
    assert.deepEqual([stage.status, next.status], ['PENDING', 'CREATED'])
    await work(jobnik, type)
    assert.equal((await jobnik.stage(next.id)).status, 'PENDING')
  },
  'CREATED → PENDING at once if the one before it is COMPLETED, as in a job that is PAUSED': async jobnik => {
    const { jobId, type } = await oneStage(jobnik)
    const task = await begin(jobnik, type)
    await jobnik.setJob(jobId, 'PAUSED')
    await jobnik.report(task.id, 'COMPLETED')
    assert.equal((await jobnik.createStage(jobId, someType())).status, 'PENDING')
  },
  ...Object.fromEntries(
    (['CREATED', 'PENDING', 'IN_PROGRESS'] as const).map(from => [
      `${from} → WAITING for an outside condition, and → PENDING by a user`,
      async (jobnik: Jobnik, { engine }: Served) => {
        const { jobId, stage, tasks, type } = await stageIn(jobnik, from)
        await engine.hold(stage.id)
        assert.equal((await jobnik.stage(stage.id)).status, 'WAITING', 'it is visible at once')
        if (from === 'CREATED') await work(jobnik, (await jobnik.job(jobId)).stages![0]!.type)
        assert.equal((await jobnik.stage(stage.id)).status, 'WAITING')
        assert.equal(await jobnik.dequeue(type), null)
        if (from === 'IN_PROGRESS') assert.equal((await jobnik.report(tasks[0]!.id, 'COMPLETED')).status, 200)
        assert.equal((await jobnik.setStage(stage.id, 'PENDING')).status, 200)
        assert.equal((await jobnik.stage(stage.id)).status, from === 'IN_PROGRESS' ? 'COMPLETED' : 'PENDING')
      },
    ]),
  ),
  'PENDING → IN_PROGRESS when the first task in the stage starts': async jobnik => {
    const { stage, type } = await stageIn(jobnik, 'PENDING')
    await begin(jobnik, type)
    assert.equal((await jobnik.stage(stage.id)).status, 'IN_PROGRESS')
  },
  'IN_PROGRESS → COMPLETED when all tasks complete': async jobnik => {
    const { stage, type } = await oneStage(jobnik, [{ data: {} }, { data: {} }])
    await work(jobnik, type)
    assert.equal((await jobnik.stage(stage.id)).status, 'IN_PROGRESS')
    await work(jobnik, type)
    assert.equal((await jobnik.stage(stage.id)).status, 'COMPLETED')
  },
  'IN_PROGRESS → FAILED when any task exhausts its retries': async jobnik => {
    const { stage, type } = await oneStage(jobnik, [{ data: {}, maxAttempts: 2 }, { data: {} }])
    await work(jobnik, type, 'FAILED')
    assert.equal((await jobnik.stage(stage.id)).status, 'IN_PROGRESS')
    await work(jobnik, type)
    await work(jobnik, type, 'FAILED')
    assert.equal((await jobnik.stage(stage.id)).status, 'FAILED')
  },
  ...Object.fromEntries(
    (['CREATED', 'WAITING', 'PENDING', 'IN_PROGRESS'] as const).map(from => [
      `${from} → ABORTED with its job`,
      async (jobnik: Jobnik) => {
        const { jobId, stage } = await stageIn(jobnik, from)
        assert.equal((await jobnik.setJob(jobId, 'ABORTED')).status, 200)
        assert.equal((await jobnik.stage(stage.id)).status, 'ABORTED')
      },
    ]),
  ),
})
