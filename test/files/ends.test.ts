/** Jobs over files end as they should, even if a worker dies or is not trusted. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { findInputs } from '../../src/babysitter/chores.ts'
import { continueJobs } from '../../src/babysitter/job-chores.ts'
import { sweepStaging } from '../../src/engine/files/promote.ts'
import { stagingOf } from '../../src/kernel/datum.ts'
import { newId } from '../../src/kernel/id.ts'
import type { StageSpec } from '../../src/spec/job-spec.ts'
import { moveArtifacts } from '../../src/store/files/artifacts.ts'
import { artifactOf, claimCommands, doFileChores, folder, putOut, succeed } from '../harness/files.ts'
import { fresh } from '../harness/fresh.ts'

const run = { command: ['true'] }

async function overFiles(t: TestContext, names: readonly string[], more: Partial<StageSpec> = {}) {
  const [inbox, outbox] = [await folder(t), await folder(t)]
  await inbox.write(Object.fromEntries(names.map(name => [name, name])))
  const stage = { name: 's', run, inputs: { doc: { uri: inbox.uri } }, outputs: outbox.uri, ...more }
  return { inbox, outbox, stage }
}

test('a process that dies when files are in their places, and before their job was told, leaves no job behind', async t => {
  const f = await fresh(t)
  const { stage } = await overFiles(t, ['a'])
  const { id } = await f.engine.submit({ name: 'j', stages: [stage] })
  await doFileChores(f)
  const [task] = await claimCommands(f)
  await putOut(f, task!, { x: 'X' })
  await succeed(f, task!)
  const [file] = (await f.engine.jobArtifacts(id)).items
  await f.engine.context.files.promote(artifactOf(task!, 'x', 'registered').stagedUri!, file!.uri, {
    size: file!.size!,
    sha256: file!.sha256!,
  })
  await moveArtifacts(f.sql, [file!.id], { to: 'stored', actor: 'engine', cause: 'put_in_place' })
  assert.equal((await f.engine.job(id)).state, 'running')
  await f.advance(4)
  await continueJobs().run(f.engine.context)
  assert.equal((await f.engine.job(id)).state, 'succeeded')
})

test('what another installation is uploading to the same folder is left alone', async t => {
  const f = await fresh(t)
  const { outbox } = await overFiles(t, [])
  const theirs = stagingOf('', newId(), 1)
  await outbox.write({ [`${theirs}x`]: 'theirs' })
  await sweepStaging(f.engine.context, outbox.uri)
  assert.deepEqual(Object.values(await outbox.read()), ['theirs'])
})

test('a stage that fails has its files in their places before the next one looks for them', async t => {
  const f = await fresh(t)
  const { stage } = await overFiles(t, ['a', 'b', 'c'], { onFailure: 'continue', retry: { attempts: 1 } })
  const next = { name: 'next', needs: ['s'], run, inputs: { part: { stage: 's' } } }
  const { id } = await f.engine.submit({ name: 'j', stages: [stage, next] })
  await doFileChores(f)
  const [bad, ...good] = await claimCommands(f)
  for (const task of good) await putOut(f, task, { [`${task.payload.inputs[0]!.path}.out`]: 'X' })
  await f.engine.fail(bad!.id, bad!.epoch, { error: { message: 'no' } })
  await succeed(f, ...good)
  await findInputs.run(f.engine.context)
  assert.equal((await f.engine.job(id)).stages[1]!.state, 'created')
  await doFileChores(f)
  await doFileChores(f)
  assert.deepEqual(
    (await f.engine.job(id)).stages.map(({ state, progress }) => [state, progress.total]),
    [
      ['failed', 3],
      ['pending', 2],
    ],
  )
})

test('an output that was replaced by other bytes of the same length is not taken for what was done before', async t => {
  const f = await fresh(t)
  const { stage, outbox } = await overFiles(t, ['a'], { reuse: true })
  const work = async () => {
    const { id } = await f.engine.submit({ name: 'j', stages: [stage] })
    await doFileChores(f)
    const tasks = await claimCommands(f)
    for (const task of tasks) await putOut(f, task, { x: 'AAAA' })
    await succeed(f, ...tasks)
    await doFileChores(f)
    return { done: tasks.length, state: (await f.engine.job(id)).state }
  }
  assert.deepEqual(await work(), { done: 1, state: 'succeeded' })
  await outbox.write({ x: 'BBBB' })
  assert.deepEqual(await work(), { done: 1, state: 'succeeded' })
  assert.deepEqual(await outbox.read(), { x: 'AAAA' })
})

test('with another image nothing was done before', async t => {
  const f = await fresh(t)
  const { stage } = await overFiles(t, ['a'], { reuse: true, queue: 'command' })
  const work = async (image: string) => {
    await f.engine.submit({ name: 'j', stages: [{ ...stage, runner: { kubernetes: { image } } }] })
    await doFileChores(f)
    const tasks = await claimCommands(f)
    await succeed(f, ...tasks)
    return tasks.length
  }
  assert.deepEqual([await work('app:1'), await work('app:1'), await work('app:2')], [1, 0, 1])
})

test('a name that no index holds is refused, and its neighbours go on', async t => {
  const f = await fresh(t)
  const { stage } = await overFiles(t, ['a'])
  await f.engine.submit({ name: 'j', stages: [stage] })
  await doFileChores(f)
  const [task] = await claimCommands(f)
  const long = artifactOf(task!, 'ä'.repeat(1500), 'registered')
  const answer = await f.engine.sync({
    worker: 'w',
    artifacts: [long, artifactOf(task!, 'fine', 'registered')].map(file => ({
      ...file,
      id: task!.id,
      epoch: task!.epoch,
    })),
  })
  assert.deepEqual(
    answer.refused.map(({ code }) => code),
    ['OPTION_INVALID'],
  )
  assert.deepEqual(
    (await f.engine.taskArtifacts(task!.id)).items.map(({ name }) => name),
    ['fine'],
  )
})

test('a stage cannot have tasks of type "command" but by saying what they run', async t => {
  const { engine } = await fresh(t)
  const spec = { name: 'j', stages: [{ name: 's', task: 'command', payload: { run } }] }
  await assert.rejects(engine.submit(spec), { code: 'SPEC_INVALID' })
})
