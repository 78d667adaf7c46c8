import assert from 'node:assert/strict'
import { test } from 'node:test'
import { claimCommands, doFileChores, folder, putOut, succeed } from '../../../test/harness/files.ts'
import { fresh } from '../../../test/harness/fresh.ts'
import { moveArtifacts } from '../files/artifacts.ts'
import { removeBatchOfJob, removeJob } from './job-ends.ts'

test('a job whose files are not in their places is deleted in small batches, with all of them', async t => {
  const f = await fresh(t)
  const [inbox, outbox] = [await folder(t), await folder(t)]
  await inbox.write(Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`f${n}`, ''])))
  const stage = { name: 's', run: { command: ['true'] }, inputs: { doc: { uri: inbox.uri } }, outputs: outbox.uri }
  const { id } = await f.engine.submit({ name: 'much', stages: [stage, { name: 'later', task: 'x', payloads: [1] }] })
  await doFileChores(f)
  const tasks = await claimCommands(f)
  for (const task of tasks) await putOut(f, task, { [`${task.payload.inputs[0]!.path}.out`]: 'X' })
  await succeed(f, ...tasks)
  await f.engine.cancelJob(id, { mode: 'hard' })

  const left = async () => {
    const [row] = await f.sql<{ open: number; tasks: number }>`
      select (select count(*)::int from pawl.artifact where ended_at is null) as open,
             (select count(*)::int from pawl.task) as tasks`
    return row!
  }
  const seen = [await left()]
  for (let is = 'some'; is !== 'gone'; seen.push(await left()))
    is = await f.sql.begin(tx => removeBatchOfJob(tx, id, 5))
  assert.deepEqual(
    [seen[0], seen.at(-1)],
    [
      { open: 12, tasks: 13 },
      { open: 0, tasks: 0 },
    ],
  )
  for (const [index, { open, tasks }] of seen.slice(1).entries()) {
    assert.ok(seen[index]!.open - open <= 5 && seen[index]!.tasks - tasks <= 5, JSON.stringify(seen))
  }
})

test('deleting a job looks for files that are not in their places among those, not among all it has', async t => {
  const f = await fresh(t, { connections: 1 })
  const payloads = Array.from({ length: 1000 }, (_, n) => n)
  const { id } = await f.engine.submit({ name: 'long', stages: [{ name: 's', task: 'x', payloads }] })
  await f.engine.cancelJob(id, { mode: 'hard' })
  await f.sql`update pawl.task set files = true`
  const files = await f.sql<{ id: string }>`
    insert into pawl.artifact (id, task_id, job_id, stage_id, name, uri, seq, round, state, history)
    select gen_random_uuid(), id, job_id, stage_id, 'x', 'file:///' || id, 1, 1, 'registered',
           array[row(pawl.clock(), 0, 'registered', 'artifact.registered', 'engine', null, null)::pawl.step]
      from pawl.task
    returning id`
  const over = { to: 'discarded', actor: 'engine', cause: 'attempt_over' } as const
  await moveArtifacts(
    f.sql,
    files.map(file => file.id),
    over,
  )
  await f.sql`analyze`
  const read = async () => {
    await f.sql`select pg_stat_force_next_flush()`
    const [row] = await f.sql<{ read: number }>`
      select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int as read
        from pg_stat_user_tables where schemaname = ${f.sql.schema} and relname in ('task', 'artifact')`
    return row!.read
  }
  const before = await read()
  await removeJob(f.sql, id, 20)
  const rows = (await read()) - before
  assert.ok(rows <= 1000 * 10, `${rows} tasks and files were read to delete 1000 of each`)
})
