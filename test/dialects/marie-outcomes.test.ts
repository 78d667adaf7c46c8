/** The outcomes of jobs and the resumption of cancelled ones, through Marie's own routes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expireTasks } from '../../src/babysitter/chores.ts'
import { marieRig } from '../harness/marie-rig.ts'

test('marie: a job shows its output, its error or the reason of its skip as output_metadata', async t => {
  const rig = await marieRig(t)
  const submit = (name: string, more: object = {}) => rig.submit({ name, data: {}, retry_limit: 0, ...more })
  const shown = async (id: string) => {
    const { state, output_metadata } = (await rig.marie.job(id)).result
    return [state, output_metadata]
  }
  const settle = async (name: string, report: object) => {
    const [held] = await rig.dispatch(name)
    const settled = [{ id: held!.id, epoch: held!.epoch, ...report }] as never
    assert.deepEqual((await rig.client.sync({ worker: 'executor', settled })).refused, [])
  }

  const done = await submit('extract')
  assert.deepEqual(await shown(done), ['CREATED', null])
  await settle('extract', { outcome: 'succeeded', output: { result: 'success', pages_processed: 10 } })
  assert.deepEqual(await shown(done), ['COMPLETED', { result: 'success', pages_processed: 10 }])

  const plain = await submit('count')
  await settle('count', { outcome: 'succeeded', output: 7 })
  assert.deepEqual(await shown(plain), ['COMPLETED', { result: 7 }])

  const skipped = await submit('letter')
  await settle('letter', { outcome: 'skipped', reason: 'branch_not_taken' })
  assert.deepEqual(await shown(skipped), ['SKIPPED', { reason: 'branch_not_taken' }])

  const failed = await submit('classify', { retry_limit: 1, retry_delay: 0 })
  await settle('classify', { outcome: 'failed', error: { message: 'Connection timeout' } })
  assert.deepEqual(await shown(failed), ['RETRY', { error: 'Connection timeout', attempts: 1 }])
  await settle('classify', { outcome: 'failed', error: { message: 'Connection refused' } })
  assert.deepEqual(await shown(failed), ['FAILED', { error: 'Connection refused', attempts: 2 }])

  const stopped = await submit('store')
  await rig.marie.stop(stopped)
  assert.deepEqual(await shown(stopped), ['CANCELLED', { reason: 'cancel' }])

  const expired = await submit('late', { expire_in_seconds: 60 })
  await rig.advance(61)
  await expireTasks.run(rig.engine.context)
  assert.deepEqual((await shown(expired))[0], 'EXPIRED')

  const listed = new Map((await rig.marie.jobs()).result.map(job => [job.id, job]))
  for (const id of [done, plain, skipped, failed, stopped, expired]) {
    assert.deepEqual(listed.get(id), (await rig.marie.job(id)).result, 'a list shows the same')
  }
})

test('marie: the jobs of a DAG behind a branch that was not taken tell so', async t => {
  const rig = await marieRig(t)
  const job = (name: string, ...dependencies: string[]) => ({ id: name, name, dag_id: 'd1', data: {}, dependencies })
  for (const each of [job('classify'), job('letter', 'classify')]) await rig.submit(each)
  await rig.work('classify', 'skipped')
  const { result } = await rig.marie.job('letter')
  assert.deepEqual([result.state, result.output_metadata], ['SKIPPED', { reason: 'needs_skipped' }])
})

test('marie: a reason that was given stays the reason, though the job was changed afterwards', async t => {
  const rig = await marieRig(t)
  const id = await rig.submit({ name: 'letter', data: {} })
  await rig.work('letter', 'skipped')
  await rig.engine.patchTask(id, { metadata: { note: 'seen' } })
  assert.deepEqual((await rig.marie.job(id)).result.output_metadata, { reason: 'branch_not_taken' })
})

test('marie: a cancelled job is resumed by its own route, and no other is', async t => {
  const rig = await marieRig(t)
  const id = await rig.submit({ name: 'extract', data: {} })
  const early = await rig.marie.resume(id)
  assert.deepEqual(
    [early.http, early.code, early.message],
    [409, 'INVALID_STATE', 'Job is CREATED and cannot be resumed'],
  )
  await rig.marie.stop(id)
  assert.equal(await rig.marie.stateOf(id), 'CANCELLED')
  const { http, result } = await rig.marie.resume(id)
  assert.deepEqual([http, result, await rig.marie.stateOf(id)], [200, 'Job resumed', 'CREATED'])
  assert.equal((await rig.marie.job(id)).result.output_metadata, null)
  assert.equal(await rig.work('extract'), 1)
  assert.equal(await rig.marie.stateOf(id), 'COMPLETED')
  assert.equal((await rig.marie.resume('nobody')).code, 'NOT_FOUND')
})

test('marie: a cancelled job of a DAG is resumed with its DAG', async t => {
  const rig = await marieRig(t)
  const job = (name: string, ...dependencies: string[]) => ({ id: name, name, dag_id: 'd1', data: {}, dependencies })
  for (const each of [job('ocr'), job('extract', 'ocr')]) await rig.submit(each)
  await rig.marie.stop('ocr')
  assert.deepEqual([await rig.marie.stateOf('ocr'), await rig.marie.stateOf('extract')], ['CANCELLED', 'CANCELLED'])
  assert.equal((await rig.marie.resume('ocr')).result, 'Job resumed')
  assert.equal(await rig.work('ocr'), 1)
  assert.equal(await rig.work('extract'), 1)
  assert.equal(await rig.marie.stateOf('extract'), 'COMPLETED')
})
