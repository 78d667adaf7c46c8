/** Files that are reported together with the end of their attempt. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { lockForFiles, registerArtifacts } from '../../src/store/files/artifacts.ts'
import { needsServer } from '../harness/databases.ts'
import { artifactOf, claimCommands, folder, upload } from '../harness/files.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { lockTask, openTransaction } from '../harness/open-transaction.ts'

const copy = { command: ['cp', 'in', 'out'] }

/** Claims two tasks, and uploads a file of each, so that its report is all that is missing. */
async function twoUploads(t: TestContext, f: Fresh) {
  const outbox = await folder(t)
  const stages = ['a', 'b'].map(name => ({ name, run: copy, outputs: outbox.uri, needs: [] }))
  await f.engine.submit({ name: 'j', stages })
  const tasks = await claimCommands(f)
  assert.equal(tasks.length, 2)
  for (const [n, task] of tasks.entries()) {
    await f.engine.start(task.id, task.epoch)
    const artifacts = [artifactOf(task, `f${n}`, 'registered')]
    await f.engine.reportArtifacts(task.id, task.epoch, { artifacts })
    await upload(task, { [`f${n}`]: 'done' })
  }
  return tasks.map(({ id, epoch }, n) => ({
    file: { id, epoch, ...artifactOf(tasks[n]!, `f${n}`, 'uploaded'), size: 4 },
    end: { id, epoch, outcome: 'succeeded' as const },
  }))
}

test('a locked task does not delay the files and the ends of others in the same report', needsServer(), async t => {
  const f = await fresh(t)
  const [locked, free] = await twoUploads(t, f)
  const reports = { artifacts: [locked!.file, free!.file], settled: [locked!.end, free!.end] }
  const other = await openTransaction(f.sql)
  try {
    await lockTask(locked!.end.id)(other.tx)
    const { refused } = await f.sync({ worker: 'w', ...reports })
    assert.deepEqual(
      refused.map(({ id, code }) => [id, code]),
      [[locked!.end.id, 'TASK_BUSY']],
    )
    assert.equal((await f.engine.task(free!.end.id)).state, 'succeeded')
  } finally {
    await other.commit()
  }
  assert.equal((await f.engine.task(locked!.end.id)).state, 'running')
  // The worker sends the report again until it is accepted.
  assert.deepEqual((await f.sync({ worker: 'w', ...reports })).refused, [])
  assert.equal((await f.engine.task(locked!.end.id)).state, 'succeeded')
})

test('a report that is sent again after its answer was lost is accepted with its files', async t => {
  const f = await fresh(t)
  const [one] = await twoUploads(t, f)
  const report = { worker: 'w', artifacts: [one!.file], settled: [one!.end] }
  assert.deepEqual((await f.sync(report)).refused, [])
  assert.deepEqual((await f.sync(report)).refused, [])
})

test('an end whose files are refused is refused with their reason', async t => {
  const f = await fresh(t)
  const [one] = await twoUploads(t, f)
  const unknown = { ...one!.file, name: 'never-registered', uri: `${one!.file.uri}-never-registered` }
  const { refused } = await f.sync({ worker: 'w', artifacts: [unknown], settled: [one!.end] })
  assert.deepEqual(
    refused.map(({ code }) => code),
    ['ARTIFACT_UNKNOWN'],
  )
  assert.equal((await f.engine.task(one!.end.id)).state, 'running')
})

test('a file that is registered while its task ends is not left undecided', needsServer(), async t => {
  const f = await fresh(t)
  const [report] = await twoUploads(t, f)
  const { id, epoch } = report!.end
  const [other] = await f.engine.taskArtifacts(id).then(({ items }) => items)
  await f.engine.reportArtifacts(id, epoch, { artifacts: [report!.file] })
  const registering = await openTransaction(f.sql)
  const task = (await lockForFiles(registering.tx, { id, epoch }))!
  const uri = `${other!.uri}.more`
  await registerArtifacts(registering.tx, { id, epoch, ...task }, [{ name: 'more', uri, stagedUri: null }])
  const ending = f.engine.succeed(id, epoch)
  const ended = assert.rejects(ending, { code: 'FILES_UNFINISHED' })
  while ((await waiting(f)) === 0);
  await registering.commit()
  await ended
  assert.equal((await f.engine.task(id)).state, 'running')
})

/** The number of statements that wait for a lock. */
async function waiting({ sql, schema }: Fresh): Promise<number> {
  const [row] = await sql<{ n: number }>`
    select count(*)::int as n from pg_stat_activity
     where wait_event_type = 'Lock' and query like ${`%"${schema}".task%`}`
  return row!.n
}
