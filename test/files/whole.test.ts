/** Workers that register all files at once and store them by themselves. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { ArtifactView, ReportedArtifact } from '../../src/protocol/files/artifacts.ts'
import { claimCommands, doFileChores, folder, succeed } from '../harness/files.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'

/** A claimed task, and the calls with which its worker reports files. */
async function held(t: TestContext, f: Fresh) {
  const [inbox, outbox] = [await folder(t), await folder(t)]
  await inbox.write({ 'a.txt': 'A' })
  const stage = { name: 'copy', run: { command: ['cp'] }, inputs: { doc: { uri: inbox.uri } }, outputs: outbox.uri }
  const job = await f.engine.submit({ name: 'copy', stages: [stage] })
  await doFileChores(f)
  const [task] = await claimCommands(f)
  const { id, epoch } = task!
  const file = (name: string, state: ReportedArtifact['state']) => ({ name, uri: `${outbox.uri}${name}`, state })
  const say = (artifacts: readonly ReportedArtifact[], whole = {}) =>
    f.engine.reportArtifacts(id, epoch, { artifacts, ...whole })
  return {
    job,
    task: task!,
    register: (...names: string[]) =>
      say(
        names.map(name => file(name, 'registered')),
        { whole: true },
      ),
    say: (name: string, state: ReportedArtifact['state']) => say([file(name, state)]),
    files: async () => (await f.engine.taskArtifacts(id)).items,
  }
}

const statesOf = (files: readonly ArtifactView[]) => files.map(({ name, state, inPlace }) => [name, state, inPlace])
const differ = { code: 'ARTIFACTS_DIFFER', status: 409 }

test('files said whole are the same when said again, whatever became of them, and others are refused', async t => {
  const f = await fresh(t)
  const { register, say, files } = await held(t, f)
  const first = await register('x', 'y')
  assert.deepEqual(await register('y', 'x'), first)
  for (const other of [['x'], ['x', 'z'], ['x', 'y', 'z'], []]) await assert.rejects(register(...other), differ)
  await say('x', 'uploaded')
  await say('y', 'error')
  const again = await register('x', 'y')
  assert.deepEqual(
    again.map(({ id }) => id),
    first.map(({ id }) => id),
  )
  assert.deepEqual(statesOf(await files()), [
    ['x', 'uploaded', true],
    ['y', 'error', false],
  ])
})

test('of two who say other files whole at once, one is refused', async t => {
  const f = await fresh(t)
  const { register, files } = await held(t, f)
  const sets = [['a', 'b'], ['a', 'c'], ['d']]
  const registrations = await Promise.allSettled(sets.map(names => register(...names)))
  assert.equal(registrations.filter(({ status }) => status === 'fulfilled').length, 1)
  const won = sets[registrations.findIndex(({ status }) => status === 'fulfilled')]
  assert.deepEqual((await files()).map(({ name }) => name).toSorted(), won)
})

test('whoever lost the task says no files of it, not even that there are none', async t => {
  const f = await fresh(t)
  const { task, register } = await held(t, f)
  assert.deepEqual(await register(), [])
  await f.engine.release(task.id, task.epoch)
  await assert.rejects(register(), { code: 'LEASE_LOST' })
  await assert.rejects(register('x'), { code: 'LEASE_LOST' })
})

test('a file that its worker has put in its place is there at once, of any size, and counts when the task has won', async t => {
  const f = await fresh(t)
  const { job, task, register, say, files } = await held(t, f)
  await register('x')
  assert.deepEqual(statesOf(await files()), [['x', 'registered', false]])
  await say('x', 'uploaded')
  assert.deepEqual(statesOf(await files()), [['x', 'uploaded', true]])
  await succeed(f, task)
  const [file] = await files()
  assert.deepEqual([file!.state, file!.inPlace, file!.size, file!.sha256], ['stored', true, null, null])
  assert.equal((await f.engine.job(job.id)).state, 'succeeded')
})

test('what is said whole is registered, and nothing else', async t => {
  const f = await fresh(t)
  const { task, files } = await held(t, f)
  const uri = `${task.payload.outputs}x`
  for (const bad of [
    { name: 'x', uri, state: 'uploaded' },
    { uri, state: 'registered' },
    { name: 'x', state: 'registered' },
  ]) {
    const artifacts = [{ name: 'y', uri: `${task.payload.outputs}y`, state: 'registered' }, bad] as ReportedArtifact[]
    const report = f.engine.reportArtifacts(task.id, task.epoch, { artifacts, whole: true })
    await assert.rejects(report, { code: 'OPTION_INVALID' })
  }
  assert.deepEqual(await files(), [])
})
