import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findInputs } from '../../src/babysitter/chores.ts'
import { listInputs } from '../../src/engine/files/list-inputs.ts'
import { takeListing } from '../../src/store/files/listings.ts'
import { eventually, latch } from '../harness/eventually.ts'
import { claimCommands, doFileChores, folder, putOut, succeed } from '../harness/files.ts'
import { fresh } from '../harness/fresh.ts'

const run = { command: ['true'] }

test('a later stage takes what an earlier one has put out, and nothing that lies beside it', async t => {
  const f = await fresh(t)
  const [inbox, outbox] = [await folder(t), await folder(t)]
  await inbox.write({ a: 'A', b: 'B' })
  await outbox.write({ 'old.txt': 'of somebody else' })
  const { id } = await f.engine.submit({
    name: 'two',
    stages: [
      { name: 'first', run, inputs: { doc: { uri: inbox.uri } }, outputs: outbox.uri },
      { name: 'each', run, inputs: { part: { stage: 'first' } } },
      { name: 'all', needs: ['first'], run, inputs: { parts: { stage: 'first', glob: '/' } } },
    ],
  })
  await doFileChores(f)
  const tasks = await claimCommands(f)
  for (const task of tasks)
    await putOut(f, task, { [`sub/${task.payload.inputs[0]!.path}.out`]: 'X', same: '' }).catch(() =>
      putOut(f, task, { [`sub/${task.payload.inputs[0]!.path}.out`]: 'X' }),
    )
  await succeed(f, ...tasks)
  await doFileChores(f)
  await doFileChores(f)
  const later = await claimCommands(f)
  assert.deepEqual(later.map(({ payload }) => payload.inputs.map(({ name, uri }) => [name, uri])).toSorted(), [
    [['part', `${outbox.uri}same`]],
    [['part', `${outbox.uri}sub/`]],
    [['parts', outbox.uri]],
  ])
  await succeed(f, ...later)
  assert.equal((await f.engine.job(id)).state, 'succeeded')
})

test('a folder without files is a stage without tasks', async t => {
  const f = await fresh(t)
  const inbox = await folder(t)
  const { id } = await f.engine.submit({
    name: 'none',
    stages: [{ name: 's', run, inputs: { doc: { uri: inbox.uri } } }],
  })
  await doFileChores(f)
  const { state, progress } = await f.engine.job(id)
  assert.deepEqual([state, progress.total], ['succeeded', 0])
})

test('whoever asks is told when what a job is given has been found, or never will be, or that it takes long', async t => {
  const f = await fresh(t)
  const inbox = await folder(t)
  await inbox.write({ a: 'A' })
  const submit = (uri: string) => f.engine.submit({ name: 'x', stages: [{ name: 's', run, inputs: { doc: { uri } } }] })
  const { id } = await submit(inbox.uri)
  assert.equal(await f.engine.internals.inputsFound(id, 0), false)
  const gone = AbortSignal.abort()
  assert.equal(await f.engine.internals.inputsFound(id, 60, gone), false, 'nobody waits for who has gone')
  const found = f.engine.internals.inputsFound(id, 60)
  await doFileChores(f)
  assert.equal(await found, true)
  assert.equal((await f.engine.job(id)).progress.total, 1)
  const lost = await submit(`${inbox.uri}nothing/`)
  const never = f.engine.internals.inputsFound(lost.id, 60)
  await doFileChores(f)
  assert.equal(await never, true)
})

test('a folder that does not exist fails the stage, by name; when it is there a retry goes on', async t => {
  const f = await fresh(t)
  const inbox = await folder(t)
  const uri = `${inbox.uri}later/`
  const { id } = await f.engine.submit({ name: 'lost', stages: [{ name: 's', run, inputs: { doc: { uri } } }] })
  await doFileChores(f)
  const { state, stages } = await f.engine.job(id)
  assert.deepEqual([state, stages[0]!.cause], ['failed', 'inputs_error'])
  assert.match(stages[0]!.error!.message, /later/)
  await inbox.write({ 'later/a': 'A' })
  await f.engine.retryJob(id)
  await doFileChores(f)
  await succeed(f, ...(await claimCommands(f)))
  assert.equal((await f.engine.job(id)).state, 'succeeded')
})

test('whoever goes on with a listing begins behind the last datum: none is missed, none doubled', async t => {
  const f = await fresh(t)
  const inbox = await folder(t)
  const names = Array.from({ length: 2500 }, (_, n) => `f${String(n).padStart(5, '0')}`)
  await inbox.write(Object.fromEntries(names.map(name => [name, ''])))
  const { id } = await f.engine.submit({
    name: 'many',
    stages: [{ name: 's', run, inputs: { doc: { uri: inbox.uri } } }],
  })
  // The store fails after the second batch, as if the process had died there.
  let pages = 0
  const { files } = f.engine.context
  const cut = {
    ...files,
    async *list(...ask: Parameters<typeof files.list>) {
      for await (const page of files.list(...ask))
        for (const entry of page) {
          if (++pages > 2100) throw new Error('the process was killed')
          yield [entry]
        }
    },
  }
  await findInputs.run({ ...f.engine.context, files: cut })
  assert.equal((await f.engine.job(id)).progress.total, 2000)
  await f.advance(61)
  await Promise.all([findInputs.run(f.engine.context), findInputs.run(f.engine.context)])
  const paths: string[] = []
  for (let tasks = await claimCommands(f, 1000); tasks.length > 0; tasks = await claimCommands(f, 1000)) {
    paths.push(...tasks.map(({ payload }) => payload.inputs[0]!.path))
    await succeed(f, ...tasks)
  }
  assert.deepEqual(paths.toSorted(), names)
  assert.equal((await f.engine.job(id)).state, 'succeeded')
})

test('a job that is cancelled while its inputs are found gets no more tasks, and ends', async t => {
  const f = await fresh(t)
  const inbox = await folder(t)
  await inbox.write({ a: '', b: '' })
  const { id } = await f.engine.submit({
    name: 'stop',
    stages: [{ name: 's', run, inputs: { doc: { uri: inbox.uri } } }],
  })
  await f.engine.cancelJob(id)
  await doFileChores(f)
  const { state, progress } = await f.engine.job(id)
  assert.deepEqual([state, progress.total], ['cancelled', 0])
  assert.deepEqual(await f.sql`select * from pawl.listing`, [])
})

test('what was done before is passed over, with its files; what changed is done again', async t => {
  const f = await fresh(t)
  const [inbox, outbox] = [await folder(t), await folder(t)]
  await inbox.write({ a: 'A', b: 'B' })
  const submit = () =>
    f.engine.submit({
      name: 'again',
      stages: [{ name: 's', run, inputs: { doc: { uri: inbox.uri } }, outputs: outbox.uri, reuse: true }],
    })
  const work = async () => {
    const { id } = await submit()
    await doFileChores(f)
    const tasks = await claimCommands(f)
    for (const task of tasks) await putOut(f, task, { [`${task.payload.inputs[0]!.path}.out`]: 'X' })
    await succeed(f, ...tasks)
    await doFileChores(f)
    const { state, progress } = await f.engine.job(id)
    const { items } = await f.engine.jobArtifacts(id)
    return {
      state,
      done: tasks.length,
      skipped: progress.skipped,
      files: items.map(({ name, state }) => `${name} ${state}`),
    }
  }
  const both = ['a.out stored', 'b.out stored']
  assert.deepEqual(await work(), { state: 'succeeded', done: 2, skipped: 0, files: both })
  assert.deepEqual(await work(), { state: 'succeeded', done: 0, skipped: 2, files: both })
  await inbox.write({ b: 'other' })
  const third = await work()
  assert.deepEqual(
    { ...third, files: third.files.toSorted() },
    { state: 'succeeded', done: 1, skipped: 1, files: both },
  )
  await f.engine.context.files.remove([`${outbox.uri}a.out`])
  const fourth = await work()
  assert.deepEqual([fourth.done, fourth.skipped], [1, 1], 'a file that was removed is made again')
})

test('where others can ask, a job can name only folders below the roots, and nothing of it is written otherwise', async t => {
  const [inside, outside] = [await folder(t), await folder(t)]
  const f = await fresh(t, { fileRoots: [inside.path], s3Buckets: ['bucket'] })
  const submit = (inputs: string, outputs: string) =>
    f.engine.submit({ name: 'j', stages: [{ name: 's', run, inputs: { doc: { uri: inputs } }, outputs }] })
  await assert.rejects(submit(outside.uri, inside.uri), { code: 'FILES_OUTSIDE' })
  await assert.rejects(submit(inside.uri, outside.uri), { code: 'FILES_OUTSIDE' })
  await assert.rejects(submit(`${inside.uri}../`, inside.uri), { code: /URI_INVALID|FILES_OUTSIDE/ })
  assert.deepEqual((await f.engine.jobs()).items, [])
  assert.equal((await submit(`${inside.uri}in/`, `${inside.uri}out/`)).state, 'pending')
  assert.equal((await submit('s3://bucket/in', 's3://bucket/out')).state, 'pending')
})

test('a stage that is added to an open job can take the files of one that was there', async t => {
  const f = await fresh(t)
  const [inbox, outbox] = [await folder(t), await folder(t)]
  await inbox.write({ a: 'A' })
  const stage = { name: 'first', run, inputs: { doc: { uri: inbox.uri } }, outputs: outbox.uri }
  const { id } = await f.engine.submit({ name: 'open', open: true, stages: [stage] })
  await doFileChores(f)
  const [task] = await claimCommands(f)
  await putOut(f, task!, { out: 'X' })
  await succeed(f, task!)
  await doFileChores(f)
  await f.engine.addStages(id, [{ name: 'second', run, inputs: { part: { stage: 'first' } } }])
  await doFileChores(f)
  const [later] = await claimCommands(f)
  assert.deepEqual(
    later!.payload.inputs.map(({ uri }) => uri),
    [`${outbox.uri}out`],
  )
})

test('inputs over which three processes have died fail their stage and are left alone', async t => {
  const f = await fresh(t)
  const inbox = await folder(t)
  await inbox.write({ a: 'A' })
  const stage = { name: 's', run, inputs: { doc: { uri: inbox.uri } } }
  const { id } = await f.engine.submit({ name: 'deadly', stages: [stage] })
  const { id: other } = await f.engine.submit({ name: 'harmless', stages: [stage] })
  for (let death = 0; death < 3; death++) {
    // The process that claims it dies. The other job is listed in between.
    assert.equal((await takeListing(f.sql))!.jobId, id)
    if (death === 0) await findInputs.run(f.engine.context)
    await f.advance(61)
  }
  await findInputs.run(f.engine.context)
  const job = await f.engine.job(id)
  assert.deepEqual([job.state, job.stages[0]!.cause], ['failed', 'inputs_error'])
  assert.match(job.stages[0]!.error!.message, /3 processes died while listing them/)
  assert.equal(await takeListing(f.sql), undefined)
  assert.equal((await f.engine.job(other)).progress.total, 1)
})

test('a listing that goes on for long without finding anything is not begun by others meanwhile', async t => {
  const f = await fresh(t)
  const inbox = await folder(t)
  const { id } = await f.engine.submit({
    name: 'slow',
    stages: [{ name: 's', run, inputs: { doc: { uri: inbox.uri } } }],
  })
  const looked = latch()
  const slow = {
    ...f.engine.context.files,
    async *list() {
      await looked.opened
      yield []
    },
  }
  const listing = listInputs({ ...f.engine.context, files: slow }, 0.02)
  await eventually(
    'it has been taken',
    async () => (await f.sql`select from pawl.listing where tries = 1`).length === 1,
  )
  await f.advance(59)
  await eventually('it is kept', async () => {
    const rows = await f.sql`select from pawl.listing where at > pawl.clock() + interval '50 seconds'`
    return rows.length === 1
  })
  await f.advance(30)
  assert.equal(await takeListing(f.sql), undefined)
  looked.open()
  await listing
  assert.equal((await f.engine.job(id)).state, 'succeeded')
})
