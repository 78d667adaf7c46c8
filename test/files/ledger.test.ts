import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { rescue } from '../../src/babysitter/rescue.ts'
import type { StageSpec } from '../../src/spec/job-spec.ts'
import { artifactOf, claimCommands, doFileChores, folder, putOut, succeed, upload } from '../harness/files.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'

const copy = { command: ['cp', 'in', 'out'] }

/** A job of one stage, `copy`, with a task for each of these files. */
async function copying(t: TestContext, f: Fresh, files: Record<string, string>, more: Partial<StageSpec> = {}) {
  const [inbox, outbox] = [await folder(t), await folder(t)]
  await inbox.write(files)
  const inputs = { doc: { uri: inbox.uri } }
  const spec = { name: 'copies', stages: [{ name: 'copy', run: copy, inputs, outputs: outbox.uri, ...more }] }
  const job = await f.engine.submit(spec)
  await doFileChores(f)
  return { job, inbox, outbox, spec }
}

test('each file of a folder becomes a task, and what they put out lies in its place when the job has succeeded', async t => {
  const f = await fresh(t)
  const { job, inbox, outbox } = await copying(t, f, { 'a.txt': 'A', 'b.txt': 'B' })
  const tasks = await claimCommands(f)
  assert.deepEqual(
    tasks.map(({ payload }) => payload.inputs.map(({ name, uri, path }) => ({ name, uri, path }))),
    ['a.txt', 'b.txt'].map(path => [{ name: 'doc', uri: `${inbox.uri}${path}`, path }]),
  )

  for (const task of tasks) await putOut(f, task, { [task.payload.inputs[0]!.path]: 'done' })
  await succeed(f, ...tasks)
  assert.equal((await f.engine.job(job.id)).state, 'running', 'its files are not in their places yet')
  assert.equal(Object.keys(await outbox.read()).filter(name => !name.startsWith('.pawl')).length, 0)

  await doFileChores(f)
  assert.equal((await f.engine.job(job.id)).state, 'succeeded')
  assert.deepEqual(await outbox.read(), { 'a.txt': 'done', 'b.txt': 'done' })
  const { items } = await f.engine.jobArtifacts(job.id)
  assert.deepEqual(
    items.map(({ name, state, size, uri }) => ({ name, state, size, uri })),
    ['a.txt', 'b.txt'].map(name => ({ name, state: 'stored', size: 4, uri: `${outbox.uri}${name}` })),
  )
})

test("a worker that lost its lease cannot register or upload, and its files never replace the winner's", async t => {
  const f = await fresh(t)
  const { job, outbox } = await copying(t, f, { 'a.txt': 'A' })
  const [zombie] = await claimCommands(f)
  await f.engine.start(zombie!.id, zombie!.epoch)
  await putOut(f, zombie!, { 'a.txt': "the zombie's" })
  await f.advance(60)
  await rescue({ beginsBlind: false }).run(f.engine.context)
  await f.advance(60)
  const [winner] = await claimCommands(f)
  assert.equal(winner!.epoch, zombie!.epoch + 1)

  const late = f.engine.reportArtifacts(zombie!.id, zombie!.epoch, {
    artifacts: [artifactOf(zombie!, 'b', 'registered')],
  })
  await assert.rejects(late, { code: 'LEASE_LOST' })
  await putOut(f, winner!, { 'a.txt': "the winner's" })
  await succeed(f, winner!)
  await upload(zombie!, { 'a.txt': 'again the zombie' })
  await assert.rejects(f.engine.succeed(zombie!.id, zombie!.epoch), { code: 'LEASE_LOST' })

  await doFileChores(f)
  await f.advance(120)
  await doFileChores(f)
  assert.deepEqual(await outbox.read(), { 'a.txt': "the winner's" }, 'and nothing of the zombie is left')
  const { items } = await f.engine.taskArtifacts(winner!.id)
  assert.deepEqual(
    items.map(({ epoch, state }) => [epoch, state]),
    [
      [1, 'discarded'],
      [2, 'stored'],
    ],
  )
  assert.equal((await f.engine.job(job.id)).state, 'succeeded')
})

test('two tasks that put out the same path: the second is refused, and told who has it; nothing is overwritten', async t => {
  const f = await fresh(t)
  const { outbox } = await copying(t, f, { 'a.txt': 'A', 'b.txt': 'B' })
  const [one, other] = await claimCommands(f)
  await putOut(f, one!, { same: 'first' })
  const second = () =>
    f.engine.reportArtifacts(other!.id, other!.epoch, { artifacts: [artifactOf(other!, 'same', 'registered')] })
  const names = new RegExp(`${one!.id}.*|${other!.id}`)
  await assert.rejects(second(), { code: 'ARTIFACT_CONTESTED', message: names })
  await succeed(f, one!)
  await doFileChores(f)
  await assert.rejects(second(), { code: 'ARTIFACT_CONFLICT', message: names })
  assert.deepEqual(await outbox.read(), { same: 'first' })
})

test('a path is free again when the attempt that had it failed', async t => {
  const f = await fresh(t)
  await copying(t, f, { 'a.txt': 'A', 'b.txt': 'B' })
  const [one, other] = await claimCommands(f)
  await putOut(f, one!, { same: 'first' })
  await f.engine.fail(one!.id, one!.epoch, { error: { message: 'no' } })
  await putOut(f, other!, { same: 'second' })
  await succeed(f, other!)
})

test('a task cannot succeed with a file that it registered and did not upload', async t => {
  const f = await fresh(t)
  await copying(t, f, { 'a.txt': 'A' })
  const [task] = await claimCommands(f)
  await f.engine.reportArtifacts(task!.id, task!.epoch, { artifacts: [artifactOf(task!, 'x', 'registered')] })
  const { refused } = await succeed(f, task!)
  assert.equal(refused[0]?.code, 'FILES_UNFINISHED')
  assert.match(refused[0]!.message, /"x"/)
  await f.engine.reportArtifacts(task!.id, task!.epoch, {
    artifacts: [{ ...artifactOf(task!, 'x', 'error'), error: 'no' }],
  })
  assert.deepEqual((await succeed(f, task!)).refused, [])
})

test('a file outside of the outputs is refused, and nothing is written down', async t => {
  const f = await fresh(t)
  await copying(t, f, { 'a.txt': 'A' })
  const [task] = await claimCommands(f)
  const { outputs } = task!.payload
  const good = artifactOf(task!, 'x', 'registered')
  const bad = [
    { ...good, uri: 'file:///etc/passwd' },
    { ...good, uri: `${outputs}../x` },
    { ...good, uri: `${outputs}a/%2e%2e/x` },
    { ...good, uri: `${outputs}.pawl/x` },
    { ...good, stagedUri: `${outputs}x` },
    { ...good, stagedUri: good.stagedUri!.replace(task!.id, '00000000-0000-7000-8000-000000000000') },
  ]
  for (const artifact of bad) {
    const report = f.engine.reportArtifacts(task!.id, task!.epoch, { artifacts: [good, artifact] })
    await assert.rejects(report, { code: 'ARTIFACT_OUTSIDE' }, artifact.uri)
  }
  assert.deepEqual((await f.engine.taskArtifacts(task!.id)).items, [])
})

test('said again, what a worker says of files changes nothing', async t => {
  const f = await fresh(t)
  await copying(t, f, { 'a.txt': 'A' })
  const [task] = await claimCommands(f)
  await putOut(f, task!, { x: 'X' })
  const before = (await f.engine.taskArtifacts(task!.id)).items
  await putOut(f, task!, { x: 'X' })
  assert.deepEqual((await f.engine.taskArtifacts(task!.id)).items, before)
})

test('a process that dies between the end of a task and its files: another one brings them to their places', async t => {
  const f = await fresh(t)
  const { job, outbox } = await copying(t, f, { 'a.txt': 'A' })
  const [task] = await claimCommands(f)
  await putOut(f, task!, { x: 'X' })
  await succeed(f, task!)
  // A worker claimed it and never reported again.
  await f.sql`update pawl.artifact set at = pawl.clock() + interval '1 minute', tries = 1`
  await doFileChores(f)
  assert.equal((await f.engine.job(job.id)).state, 'running')
  await f.advance(61)
  await doFileChores(f)
  assert.equal((await f.engine.job(job.id)).state, 'succeeded')
  assert.deepEqual(await outbox.read(), { x: 'X' })
})

test('an upload that vanished before it was in its place fails the stage, and says which file', async t => {
  const f = await fresh(t)
  const { job, outbox } = await copying(t, f, { 'a.txt': 'A' })
  const [task] = await claimCommands(f)
  await putOut(f, task!, { x: 'X' })
  await f.engine.context.files.remove([artifactOf(task!, 'x', 'registered').stagedUri!])
  await succeed(f, task!)
  await doFileChores(f)
  const { state, stages } = await f.engine.job(job.id)
  assert.deepEqual([state, stages[0]!.state, stages[0]!.cause], ['failed', 'failed', 'output_lost'])
  const [file] = (await f.engine.jobArtifacts(job.id, { state: 'error' })).items
  assert.match(file!.error!, /does not exist/)
  assert.deepEqual(await outbox.read(), {})
})

test('which inputs made a file, and what was made of one, can be asked', async t => {
  const f = await fresh(t)
  const { job, inbox, outbox } = await copying(t, f, { 'a.txt': 'A', 'b.txt': 'B' })
  const tasks = await claimCommands(f)
  for (const task of tasks) await putOut(f, task, { [`${task.payload.inputs[0]!.path}.out`]: 'X' })
  await succeed(f, ...tasks)
  await doFileChores(f)
  const made = await f.engine.lineage({ uri: `${outbox.uri}b.txt.out` })
  assert.deepEqual(
    made.madeBy.map(({ jobId, inputs }) => [jobId, inputs.map(({ uri }) => uri)]),
    [[job.id, [`${inbox.uri}b.txt`]]],
  )
  const used = await f.engine.lineage({ uri: `${inbox.uri}b.txt` })
  assert.deepEqual(
    used.usedBy.map(({ outputs }) => outputs.map(({ uri }) => uri)),
    [[`${outbox.uri}b.txt.out`]],
  )
})

test('a job can be deleted with all that the ledger knows of it', async t => {
  const f = await fresh(t)
  const { job } = await copying(t, f, { 'a.txt': 'A' })
  const [task] = await claimCommands(f)
  await putOut(f, task!, { x: 'X' })
  await succeed(f, task!)
  await doFileChores(f)
  await f.engine.deleteJob(job.id)
  const [left] = await f.sql`
    select (select count(*) from pawl.artifact) as artifacts, (select count(*) from pawl.input) as inputs`
  assert.deepEqual(left, { artifacts: 0, inputs: 0 })
})
