import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../test/harness/fresh.ts'
import type { Problem } from '../kernel/problem.ts'
import { JobFailed, TaskFailed } from '../protocol/tasks/results.ts'
import { defineTask } from '../worker/define-task.ts'
import { GiveUp, Skip } from '../worker/errors.ts'
import { startWorker } from '../worker/worker.ts'
import { makeEndWatch } from './ends.ts'

const limits = { timeout: 600_000 }
const hurried = { drainSeconds: 2, waitSeconds: 0.5 }
const double = defineTask({ type: 'double', handler: async (n: number) => ({ doubled: 2 * n }) })

test('the handle of a task returns its output', limits, async t => {
  const { engine } = await fresh(t)
  await using _worker = startWorker(engine, [double], hurried)
  const handle = await engine.enqueue(double, 21)
  assert.deepEqual(await handle.result(), { doubled: 42 })
  assert.deepEqual(await handle.result(), { doubled: 42 }, 'a second time')
})

test('a handle can be compared, stored and sent like the answer of an enqueue', limits, async t => {
  const { engine } = await fresh(t)
  const handle = await engine.enqueue(double, 21)
  assert.deepEqual(JSON.parse(JSON.stringify(handle)), { id: handle.id, state: 'queued', deduplicated: false })
})

test('the result of a task that fails is an error with its id, its error and its cause', limits, async t => {
  const { engine } = await fresh(t)
  const refuse = defineTask({
    type: 'refuse',
    handler: () => {
      throw new GiveUp('the account is closed')
    },
  })
  await using _worker = startWorker(engine, [refuse], hurried)
  const handle = await engine.enqueue(refuse, null)
  await assert.rejects(handle.result(), (error: TaskFailed) => {
    assert.ok(error instanceof TaskFailed)
    assert.equal(error.taskId, handle.id)
    assert.equal(error.state, 'failed')
    assert.equal(error.message, `Task refuse (${handle.id}) is failed: the account is closed`)
    assert.equal((error.cause as Error).message, 'the account is closed')
    assert.match((error.cause as Error).stack!, /results\.test/)
    return true
  })
})

test('the result of a task that was skipped or cancelled is an error that names its state', limits, async t => {
  const { engine } = await fresh(t)
  const skip = defineTask({
    type: 'skip',
    handler: () => {
      throw new Skip('nothing to do')
    },
  })
  await using _worker = startWorker(engine, [skip], hurried)
  const skipped = await engine.enqueue(skip, null)
  await assert.rejects(skipped.result(), { name: 'TaskFailed', state: 'skipped' })
  const waiting = await engine.enqueue('nobody-does-this', null)
  const result = waiting.result()
  await engine.cancel(waiting.id, { mode: 'hard' })
  await assert.rejects(result, { name: 'TaskFailed', state: 'cancelled' })
})

test('a result that does not come in time is a problem, and can be awaited again', limits, async t => {
  const { engine } = await fresh(t)
  const handle = await engine.enqueue(double, 4)
  await assert.rejects(handle.result({ timeoutSeconds: 0.05 }), (error: Problem) => {
    assert.deepEqual([error.code, error.details.id, error.details.state], ['RESULT_TIMEOUT', handle.id, 'queued'])
    return true
  })
  await using _worker = startWorker(engine, [double], hurried)
  assert.deepEqual(await handle.result(), { doubled: 8 })
})

test('a result that another process brings is found, too', limits, async t => {
  const { engine, sql, sync } = await fresh(t)
  const handle = await engine.enqueue('double', 4)
  const result = handle.result()
  const { claimed } = await sync({ queues: ['double'], claim: 1 })
  // Written past this process: nothing wakes the waiter.
  await sql`
    update pawl.task t
       set state = 'succeeded', seq = seq + 2, ended_at = pawl.clock(), lease_until = null, output = '8',
           history = history || array[row(pawl.clock(), epoch, 'running', null, null, 'implied', null)::pawl.step,
                                      row(pawl.clock(), epoch, 'succeeded', null, null, null, null)::pawl.step]
     where id = ${claimed[0]!.id}`
  await sql`insert into pawl.change (entity, ids, seqs) values ('task', ${[handle.id, handle.id]}, ${[3, 4]})`
  assert.equal(await result, 8)
})

test('the handle of a job returns it when it has ended, and throws the failure of its first task', limits, async t => {
  const { engine } = await fresh(t)
  const picky = defineTask({
    type: 'picky',
    handler: async (n: number) => {
      if (n === 2) throw new GiveUp('not this one')
    },
  })
  await using _worker = startWorker(engine, [picky], hurried)
  const good = await engine.submit({ name: 'good', stages: [{ name: 'only', task: 'picky', payload: 1 }] })
  assert.equal((await good.result()).state, 'succeeded')
  const bad = await engine.submit({ name: 'bad', stages: [{ name: 'only', task: 'picky', payloads: [1, 2] }] })
  await assert.rejects(bad.result(), (error: JobFailed) => {
    assert.ok(error instanceof JobFailed && error.cause instanceof TaskFailed)
    assert.equal(error.jobId, bad.id)
    assert.match(error.message, /^Job bad \(.*\) is failed\. Task picky \(.*\) is failed: not this one$/)
    return true
  })
})

test('a read that waits for the end answers when its time is over or its caller gives up', limits, async t => {
  const { engine } = await fresh(t)
  const { id } = await engine.enqueue('nobody-does-this', null)
  assert.equal((await engine.task(id, { waitSeconds: 0.02 })).state, 'queued')
  const caller = new AbortController()
  const answer = engine.task(id, { waitSeconds: 60 }, caller.signal)
  caller.abort()
  assert.equal((await answer).state, 'queued')
  await assert.rejects(engine.task(id, { waitSeconds: 61 }), { code: 'OPTION_INVALID' })
  await assert.rejects(engine.task('00000000-0000-7000-8000-000000000000', { waitSeconds: 5 }), {
    code: 'TASK_NOT_FOUND',
  })
})

test('a thousand waits share one statement', limits, async () => {
  const reads: number[] = []
  const watch = makeEndWatch(async ids => {
    reads.push(ids.length)
    return ids
  }, new AbortController().signal)
  await Promise.all(Array.from({ length: 1000 }, (_, n) => watch.wait(`task ${n}`, 60_000)))
  assert.deepEqual(reads, [1000])
})

test('a wait ends soon after the end in another process, however many other waits begin', limits, async () => {
  const watch = makeEndWatch(async ids => ids.filter(id => id === 'ended'), new AbortController().signal)
  const stop = new AbortController()
  const others = setInterval(() => void watch.wait('goes on', 60_000, stop.signal), 2)
  const began = performance.now()
  await watch.wait('ended', 60_000)
  clearInterval(others)
  stop.abort()
  assert.ok(performance.now() - began < 50_000, 'it was found by a poll, not by its own timeout')
})
