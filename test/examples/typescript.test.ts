/** The examples of docs/typescript.md: tasks by name, and a job whose stages read earlier outputs. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openApp, resizeAll, resizeOne } from '../../examples/typescript/enqueue.ts'
import { listFiles, publish, resize } from '../../examples/typescript/tasks.ts'
import { thumbnails } from '../../examples/typescript/thumbnails.ts'
import { startWorker } from '../../src/worker/worker.ts'
import { fresh } from '../harness/fresh.ts'

test('tasks are enqueued by name, and their results are typed', async t => {
  const app = await openApp()
  t.after(() => app.close())
  const worker = startWorker(app, [resize, publish], { drainSeconds: 2 })
  t.after(() => worker.stop())
  assert.equal(await resizeOne(app, 'a.png'), '100px-a.png')
  assert.equal(await resizeAll(app, ['b.png', 'c.png']), 2)
})

test('a job fans out over the files of a folder and publishes all results', async t => {
  const { engine } = await fresh(t)
  const folder = await mkdtemp(join(tmpdir(), 'pawl-album-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  for (const name of ['b.png', 'a.png']) await writeFile(join(folder, name), '')
  await using _worker = startWorker(engine, [listFiles, resize, publish], { drainSeconds: 2 })
  const job = await (await engine.submit(thumbnails({ title: 'Summer', folder }))).result()
  assert.equal(job.state, 'succeeded')
  const { items } = await engine.jobTasks(job.id, { order: 'oldest' })
  const published = items.find(({ type }) => type === 'publish')
  assert.equal(published?.output, 'Summer: 100px-a.png, 100px-b.png')
  assert.equal(items.filter(({ type }) => type === 'resize').length, 2)
})
