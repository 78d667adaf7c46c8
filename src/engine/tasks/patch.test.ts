import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import { jobIn, stageIn } from '../../../test/harness/job-in.ts'
import { everyState, taskIn } from '../../../test/harness/task-in.ts'

test('metadata of a task can be changed in any state, and it stays in that state', async t => {
  const run = await fresh(t)
  for (const state of everyState) {
    const { id, epoch } = await taskIn(run, state, { metadata: { owner: 'ada', tags: { a: 1 } } })
    const before = await run.engine.task(id)
    const patch = { metadata: { owner: null, tags: { b: 2 }, ticket: 7 } }
    const after = await run.engine.patchTask(id, patch, { actor: 'user:bob', reason: 'asked to' })
    const kept = state === 'blocked' ? {} : { a: 1 }
    assert.deepEqual(after.metadata, { tags: { ...kept, b: 2 }, ticket: 7 }, state)
    const { metadata: _, seq, changedAt: _at, ...rest } = after
    assert.equal(seq, before.seq + 1)
    for (const [name, value] of Object.entries(rest)) assert.deepEqual(value, before[name as keyof typeof rest], name)
    const event = (await run.engine.taskEvents(id)).items.at(-1)!
    assert.deepEqual(
      [event.type, event.from, event.to, event.actor, event.epoch],
      ['task.metadata_changed', state, state, 'user:bob', epoch],
    )
    const owner = state === 'blocked' ? null : 'ada'
    const tags = state === 'blocked' ? null : { a: 1 }
    assert.deepEqual(event.payload, {
      patch: patch.metadata,
      before: { owner, tags, ticket: null },
      reason: 'asked to',
    })
  }
})

test('a worker goes on with a task whose metadata was changed meanwhile', async t => {
  const run = await fresh(t)
  for (const state of ['assigned', 'running'] as const) {
    const { id, epoch } = await taskIn(run, state)
    await run.engine.patchTask(id, { metadata: { seen: true } })
    const { refused } = await run.sync({ beats: [{ id, epoch }] })
    const settled = await run.sync({ settled: [{ id, epoch, outcome: 'succeeded', output: 1 }] })
    assert.deepEqual([refused, settled.refused], [[], []])
    const { state: ended, metadata } = await run.engine.task(id)
    assert.deepEqual([ended, metadata], ['succeeded', { seen: true }])
    const { items } = await run.engine.taskEvents(id)
    assert.equal((await run.engine.attempts(id))[0]!.outcome, 'succeeded')
    assert.equal(items.length, 5)
  }
})

test('metadata and priority of a job change together, running or ended, and nothing else does', async t => {
  const run = await fresh(t)
  for (const state of ['running', 'failed', 'succeeded'] as const) {
    const id = await jobIn(run, state)
    const before = await run.engine.job(id)
    const after = await run.engine.patchJob(id, { metadata: { owner: 'ada' }, priority: 7 }, { actor: 'user:bob' })
    assert.deepEqual([after.state, after.metadata, after.priority], [state, { owner: 'ada' }, 7])
    assert.deepEqual(
      after.stages.map(stage => [stage.state, stage.seq]),
      before.stages.map(stage => [stage.state, stage.seq]),
    )
    const events = (await run.engine.jobEvents(id)).items.slice(-2)
    assert.deepEqual(
      events.map(({ type, actor, from, to }) => [type, actor, from, to]),
      ['job.priority_changed', 'job.metadata_changed'].map(type => [type, 'user:bob', state, state]),
    )
  }
})

test('metadata of a stage can be changed, whatever state it is in', async t => {
  const run = await fresh(t)
  for (const state of ['created', 'waiting', 'running', 'failed'] as const) {
    const { id } = await stageIn(run, state)
    await run.engine.patchStage(id, { metadata: { a: { b: 1 } } })
    const after = await run.engine.patchStage(id, { metadata: { a: { c: 2 } } })
    assert.deepEqual([after.state, after.metadata], [state, { a: { b: 1, c: 2 } }])
    const event = (await run.engine.stageEvents(id)).items.at(-1)!
    assert.deepEqual([event.type, event.from, event.to], ['stage.metadata_changed', state, state])
    assert.deepEqual((await run.engine.patchStage(id, { metadata: null })).metadata, {})
  }
})

test('a patch that changes nothing writes no event', async t => {
  const run = await fresh(t)
  const task = await taskIn(run, 'queued', { metadata: { a: [1, { b: 2 }] } })
  const job = await jobIn(run, 'running')
  const before = await run.engine.patchJob(job, { metadata: { a: 1 }, priority: 3 })
  assert.equal((await run.engine.patchTask(task.id, { metadata: { a: [1, { b: 2 }], c: null } })).seq, 1)
  assert.equal((await run.engine.patchTask(task.id, {})).seq, 1)
  assert.equal((await run.engine.patchJob(job, { metadata: { a: 1 }, priority: 3 })).seq, before.seq)
})

test('a patch sent again under its Idempotency-Key is done once', async t => {
  const run = await fresh(t)
  const { id } = await taskIn(run, 'queued')
  const first = await run.engine.patchTask(id, { metadata: { a: 1 } }, { idempotencyKey: 'k' })
  await run.engine.patchTask(id, { metadata: { a: 2 } })
  assert.deepEqual(await run.engine.patchTask(id, { metadata: { a: 1 } }, { idempotencyKey: 'k' }), first)
  assert.deepEqual((await run.engine.task(id)).metadata, { a: 2 })
})

test('metadata in a transaction is changed when it commits, and never was if it does not', async t => {
  const run = await fresh(t)
  const { id } = await taskIn(run, 'running')
  const oops = new Error('oops')
  const patched = (andThen: () => void) =>
    run.engine.transaction(async tx => {
      await run.engine.patchTask(id, { metadata: { a: 1 } }, { tx })
      andThen()
    })
  const failing = () => {
    throw oops
  }
  await assert.rejects(patched(failing), oops)
  assert.deepEqual((await run.engine.task(id)).metadata, {})
  await patched(() => {})
  assert.deepEqual((await run.engine.task(id)).metadata, { a: 1 })
})

test('two who change different keys of the same metadata at once both have their way', async t => {
  const run = await fresh(t)
  const { id } = await taskIn(run, 'running')
  const keys = Array.from({ length: 10 }, (_, index) => `k${index}`)
  await Promise.all(keys.map(key => run.engine.patchTask(id, { metadata: { [key]: 1 } })))
  assert.deepEqual(Object.keys((await run.engine.task(id)).metadata).sort(), keys)
})

test('metadata that is too large, is no JSON or is no object is refused, and nothing changes', async t => {
  const run = await fresh(t, { maxPayloadBytes: 100_000 })
  const { id } = await taskIn(run, 'queued', { metadata: { a: 'x'.repeat(60_000) } })
  const any = (value: unknown) => value as Record<string, unknown>
  const { engine } = run
  const small = await taskIn(run, 'queued')
  const large = { metadata: { b: 'x'.repeat(65_536) } }
  await assert.rejects(engine.patchTask(small.id, large), { code: 'PAYLOAD_TOO_LARGE' })
  await assert.rejects(engine.patchTask(id, { metadata: { b: 'x'.repeat(50_000) } }), { code: 'PAYLOAD_TOO_LARGE' })
  await assert.rejects(engine.patchTask(id, { metadata: { b: '\0' } }), { code: 'PAYLOAD_INVALID' })
  await assert.rejects(engine.patchTask(id, { metadata: any([1]) }), { code: 'OPTION_INVALID' })
  await assert.rejects(engine.patchTask(id, any({ metdata: {} })), /didYouMean: "metadata"/)
  await assert.rejects(engine.patchTask(id, any({ priority: 1 })), { code: 'OPTION_UNKNOWN' })
  assert.equal((await engine.task(id)).seq, 1)
})

test('metadata can be replaced as a whole, and the event says what stood there', async t => {
  const run = await fresh(t)
  const metadata = { owner: 'ada', tags: { a: 1 } }
  const { id } = await taskIn(run, 'queued', { metadata })
  const { id: stageId, jobId } = await stageIn(run, 'pending')
  const anew = { tags: { b: null } }
  const replaced = await run.engine.patchTask(id, { metadata: anew, replace: true })
  assert.deepEqual(replaced.metadata, anew)
  const event = (await run.engine.taskEvents(id)).items.at(-1)!
  assert.deepEqual(event.payload, { patch: anew, replaces: true, before: metadata })
  await run.engine.patchJob(jobId, { metadata })
  await run.engine.patchStage(stageId, { metadata })
  assert.deepEqual((await run.engine.patchJob(jobId, { metadata: anew, replace: true })).metadata, anew)
  assert.deepEqual((await run.engine.patchStage(stageId, { metadata: anew, replace: true })).metadata, anew)
  assert.deepEqual((await run.engine.patchTask(id, { metadata: null, replace: true })).metadata, {})
  const { seq } = await run.engine.task(id)
  await run.engine.patchTask(id, { metadata: {}, replace: true })
  assert.equal((await run.engine.task(id)).seq, seq, 'what changes nothing is no event')
})
