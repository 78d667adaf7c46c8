/** Seed 001's rows of tasks, and its cascades: what is allowed, and each ❌ ILLEGAL one with its code. */
import assert from 'node:assert/strict'
import type { Jobnik } from './jobnik-client.ts'
import { begin, illegal, oneStage, someType, table, taskIn, taskStatuses, work } from './jobnik-in.ts'

table('seed 001, tasks, by workers: COMPLETED and FAILED from IN_PROGRESS, and from nowhere else', {
  ...Object.fromEntries(
    taskStatuses.flatMap(from =>
      ['COMPLETED', 'FAILED'].map(to => [
        from === 'IN_PROGRESS' ? `${from} → ${to} by a worker` : `❌ ${from} → ${to} is ILLEGAL`,
        async (jobnik: Jobnik) => {
          const task = await taskIn(jobnik, from)
          const { status, body } = await jobnik.report(task.id, to)
          if (from === 'IN_PROGRESS') return assert.deepEqual([status, body.status], [200, to])
          assert.deepEqual([status, body], [400, illegal('TASK', from, to)])
          assert.deepEqual(await jobnik.task(task.id), task)
        },
      ]),
    ),
  ),
  '❌ PENDING, IN_PROGRESS and RETRIED cannot be set by hand, from any status': async jobnik => {
    for (const from of taskStatuses) {
      const task = await taskIn(jobnik, from)
      for (const to of ['PENDING', 'IN_PROGRESS', 'RETRIED', 'CREATED']) {
        const { status, body } = await jobnik.report(task.id, to)
        assert.deepEqual([status, body.code], [400, 'VALIDATION_ERROR'], `${from} → ${to}`)
      }
      assert.deepEqual(await jobnik.task(task.id), task)
    }
  },
})

table('seed 001, tasks, system-controlled', {
  'CREATED → PENDING when the task is created, whatever its stage is': async jobnik => {
    const { jobId, tasks } = await oneStage(jobnik)
    const later = await jobnik.createStage(jobId, someType())
    const [blocked] = await jobnik.createTasks(later.id, [{ data: {} }])
    assert.deepEqual([tasks[0]!.status, blocked!.status], ['PENDING', 'PENDING'])
    assert.equal(await jobnik.dequeue(later.type), null)
  },
  'PENDING → IN_PROGRESS atomically when a worker dequeues it': async jobnik => {
    const { type, tasks } = await oneStage(jobnik)
    const many = await Promise.all(Array.from({ length: 5 }, () => jobnik.dequeue(type)))
    assert.deepEqual(
      many.flatMap(task => (task === null ? [] : [[task.id, task.status]])),
      [[tasks[0]!.id, 'IN_PROGRESS']],
    )
  },
  'IN_PROGRESS → RETRIED → IN_PROGRESS while attempts < maxAttempts, at once, then → FAILED': async jobnik => {
    const { type } = await oneStage(jobnik, [{ data: {}, maxAttempts: 3 }])
    for (const [attempts, status] of [
      [1, 'RETRIED'],
      [2, 'RETRIED'],
      [3, 'FAILED'],
    ] as const) {
      const begun = await begin(jobnik, type)
      assert.deepEqual([begun.status, begun.attempts], ['IN_PROGRESS', attempts - 1])
      const { body } = await jobnik.report(begun.id, 'FAILED')
      assert.deepEqual([body.status, body.attempts, body.maxAttempts], [status, attempts, 3])
    }
    assert.equal(await jobnik.dequeue(type), null)
  },
  'RETRIED → IN_PROGRESS → COMPLETED': async jobnik => {
    const { type, jobId } = await oneStage(jobnik, [{ data: {}, maxAttempts: 2 }])
    await work(jobnik, type, 'FAILED')
    const { status, attempts } = await work(jobnik, type)
    assert.deepEqual([status, attempts, (await jobnik.job(jobId)).status], ['COMPLETED', 1, 'COMPLETED'])
  },
})

table('seed 001, cascades', {
  'all tasks complete → stage COMPLETED → all stages complete → job COMPLETED': async jobnik => {
    const { jobId, type } = await oneStage(jobnik, [{ data: {} }, { data: {} }])
    await work(jobnik, type)
    await work(jobnik, type)
    const { status, stages } = await jobnik.job(jobId)
    assert.deepEqual([status, stages![0]!.status, stages![0]!.percentage], ['COMPLETED', 'COMPLETED', 100])
  },
  'a task permanently fails → stage FAILED → job FAILED, and what comes after stays CREATED or WAITING':
    async jobnik => {
      const { jobId, type } = await oneStage(jobnik)
      await jobnik.createStage(jobId, someType())
      await jobnik.createStage(jobId, someType(), { startAsWaiting: true })
      await work(jobnik, type, 'FAILED')
      const { status, stages } = await jobnik.job(jobId)
      assert.deepEqual([status, ...stages!.map(stage => stage.status)], ['FAILED', 'FAILED', 'CREATED', 'WAITING'])
    },
  'a user aborts the job → ABORTED → all its stages ABORTED; what was COMPLETED stays so': async jobnik => {
    const { jobId, type } = await oneStage(jobnik)
    await jobnik.createStage(jobId, someType())
    await jobnik.createStage(jobId, someType(), { startAsWaiting: true })
    await work(jobnik, type)
    await jobnik.setJob(jobId, 'ABORTED')
    const { status, stages } = await jobnik.job(jobId)
    assert.deepEqual([status, ...stages!.map(stage => stage.status)], ['ABORTED', 'COMPLETED', 'ABORTED', 'ABORTED'])
  },
  'a stage without tasks stays as it is, and so does its job': async jobnik => {
    const { id } = await jobnik.createJob()
    await jobnik.createStage(id, someType())
    const { status, percentage, stages } = await jobnik.job(id)
    assert.deepEqual([status, percentage, stages![0]!.status, stages![0]!.percentage], ['PENDING', 0, 'PENDING', 0])
  },
})
