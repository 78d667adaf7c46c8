import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { findInputs } from '../../src/babysitter/chores.ts'
import type { ClaimedTask } from '../../src/protocol/tasks/sync.ts'
import type { StageSpec } from '../../src/spec/job-spec.ts'
import { artifactOf, claimCommands, doFileChores, folder, putOut, succeed } from '../harness/files.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'

const run = { command: ['true'] }

type Command = Awaited<ReturnType<typeof claimCommands>>[number]
const pathOf = ({ payload }: Command) => payload.inputs[0]!.path
const pathsOf = (tasks: readonly Command[]) => tasks.map(pathOf).toSorted()
const failTask = (f: Fresh, { id, epoch }: ClaimedTask) =>
  f.engine.fail(id, epoch, { error: { message: 'no', permanent: true } })

/** Lists all inputs and claims the tasks. Those in `bad` fail, the others each write `<input>.out`. */
async function work(f: Fresh, bad: readonly string[] = []): Promise<readonly Command[]> {
  await doFileChores(f)
  const tasks = await claimCommands(f)
  const good = tasks.filter(task => !bad.includes(pathOf(task)))
  for (const task of good) if (task.payload.outputs !== null) await putOut(f, task, { [`${pathOf(task)}.out`]: 'X' })
  await succeed(f, ...good)
  for (const task of tasks) if (!good.includes(task)) await failTask(f, task)
  await doFileChores(f)
  return tasks
}

/** A job of two stages: `s` over the files of a folder, and `m` over the outputs of `s`. */
async function twoStages(t: TestContext, files: readonly string[], s: Partial<StageSpec>, m: Partial<StageSpec>) {
  const f = await fresh(t)
  const [inbox, outbox] = [await folder(t), await folder(t)]
  await inbox.write(Object.fromEntries(files.map(name => [name, name])))
  const { id } = await f.engine.submit({
    name: 'two',
    stages: [
      { name: 's', run, inputs: { doc: { uri: inbox.uri } }, outputs: outbox.uri, ...s } as StageSpec,
      { name: 'm', run, inputs: { part: { stage: 's' } }, ...m } as StageSpec,
    ],
  })
  return { f, id, inbox, outbox }
}

test('a later stage of a clone takes the files that were there and those that it makes, and none is made twice', async t => {
  const { f, id, inbox } = await twoStages(t, ['a', 'b', 'c'], { failFast: false }, {})
  await work(f, ['b'])
  assert.equal((await f.engine.job(id)).state, 'failed')
  const clone = await f.engine.retryJob(id, { clone: true })
  assert.deepEqual([clone.progress.total, clone.progress.skipped], [3, 2])
  const again = await work(f)
  assert.deepEqual(pathsOf(again), ['b'])
  assert.deepEqual(pathsOf(await work(f)), ['a.out', 'b.out', 'c.out'])
  assert.equal((await f.engine.job(clone.id)).state, 'succeeded')
  const { usedBy } = await f.engine.lineage({ uri: `${inbox.uri}b` })
  const cloned = usedBy.filter(({ jobId }) => jobId === clone.id)
  assert.deepEqual(
    cloned.map(({ taskId, outputs }) => [taskId, outputs.length]),
    [[again[0]!.id, 1]],
  )
})

test('a clone does a whole folder of files again when more come into it, and sees all of them', async t => {
  const parts = { inputs: { parts: { stage: 's', glob: '/' } } }
  const { f, id } = await twoStages(t, ['a', 'b'], { failFast: false, tolerate: { count: 1 } }, parts)
  await work(f, ['b'])
  await work(f)
  assert.equal((await f.engine.job(id)).state, 'partial')
  const clone = await f.engine.retryJob(id, { clone: true })
  assert.deepEqual(pathsOf(await work(f)), ['b'])
  const all = await work(f)
  const { id: stageId } = clone.stages[0]!
  assert.deepEqual(
    all.map(({ payload }) => payload.inputs.map(input => input.stageId)),
    [[stageId]],
  )
  const { items } = await f.engine.stageArtifacts(stageId)
  assert.deepEqual(items.map(({ name, state }) => `${name} ${state}`).toSorted(), ['a.out stored', 'b.out stored'])
  assert.equal((await f.engine.job(clone.id)).state, 'succeeded')
})

test('a clone of a job whose inputs had not all been found does each of them once', async t => {
  const f = await fresh(t)
  const inbox = await folder(t)
  const names = Array.from({ length: 1200 }, (_, n) => `f${String(n).padStart(5, '0')}`)
  await inbox.write(Object.fromEntries(names.map(name => [name, ''])))
  const stages = [{ name: 's', run, inputs: { doc: { uri: inbox.uri } } }]
  const { id } = await f.engine.submit({ name: 'many', stages })
  const { files } = f.engine.context
  const cut: typeof files = {
    ...files,
    async *list(...ask: Parameters<typeof files.list>) {
      let seen = 0
      for await (const page of files.list(...ask))
        for (const entry of page) {
          if (++seen > 1100) throw new Error('the process was killed')
          yield [entry]
        }
    },
  }
  await findInputs.run({ ...f.engine.context, files: cut })
  const before = await claimCommands(f, 10)
  await succeed(f, ...before)
  await f.engine.cancelJob(id, { mode: 'hard' })
  await f.engine.retryJob(id, { clone: true })
  await findInputs.run(f.engine.context)
  const rest: Command[] = []
  for (let some = await claimCommands(f, 1000); some.length > 0; some = await claimCommands(f, 1000)) rest.push(...some)
  assert.deepEqual(pathsOf([...before, ...rest]), names)
})

test('a job that lost a file of a task that succeeded is not retried in place; a clone makes just that file again', async t => {
  const { f, id, outbox } = await twoStages(t, ['a', 'b'], {}, {})
  await doFileChores(f)
  const tasks = await claimCommands(f)
  for (const task of tasks) await putOut(f, task, { [`${pathOf(task)}.out`]: 'X' })
  const lost = tasks.find(task => pathOf(task) === 'b')!
  await f.engine.context.files.remove([artifactOf(lost, 'b.out', 'registered').stagedUri!])
  await succeed(f, ...tasks)
  await doFileChores(f)
  const { state, stages } = await f.engine.job(id)
  assert.equal(state, 'failed')
  const refused = { code: 'OUTPUT_LOST', message: /"s"/ }
  await assert.rejects(f.engine.retryJob(id), refused)
  await assert.rejects(f.engine.resumeJob(id), refused)
  await assert.rejects(f.engine.retryStage(stages[0]!.id), refused)
  const clone = await f.engine.retryJob(id, { clone: true })
  assert.deepEqual(pathsOf(await work(f)), ['b'])
  assert.deepEqual(pathsOf(await work(f)), ['a.out', 'b.out'])
  assert.equal((await f.engine.job(clone.id)).state, 'succeeded')
  assert.deepEqual(Object.keys(await outbox.read()), ['a.out', 'b.out'])
})

test('after a retry a later stage takes what the earlier one has put out since, and nothing twice', async t => {
  const { f, id } = await twoStages(
    t,
    ['a', 'b', 'c'],
    { failFast: false, tolerate: { count: 1 } },
    { failFast: false },
  )
  await work(f, ['a'])
  assert.deepEqual(pathsOf(await work(f, ['c.out'])), ['b.out', 'c.out'])
  assert.equal((await f.engine.job(id)).state, 'failed')
  await f.engine.retryJob(id)
  assert.deepEqual(pathsOf(await work(f)), ['a'])
  assert.deepEqual(pathsOf(await work(f)), ['a.out', 'c.out'])
  const { state, stages } = await f.engine.job(id)
  assert.deepEqual([state, stages[1]!.progress.total], ['succeeded', 3])
})
