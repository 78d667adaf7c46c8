import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { ended, eventually } from '../../../test/harness/eventually.ts'
import { fresh } from '../../../test/harness/fresh.ts'
import { served } from '../../../test/harness/served.ts'
import { connect } from '../../client/client.ts'
import type { pawl } from '../../engine/engine.ts'
import { defineTask } from '../../worker/define-task.ts'
import { startWorker } from '../../worker/worker.ts'

const resize = defineTask({
  type: 'resize-picture',
  payload: z.object({ file: z.string().refine(file => file.endsWith('.png'), 'must be a PNG') }),
  handler: ({ file }) => `small ${file}`,
})
const tasks = { resize }

/** The engine and the client, each with the same tasks. */
const apps = {
  engine: async (t: Parameters<typeof fresh>[0]) => {
    const run = await fresh(t, { tasks })
    return { engine: run.engine, app: run.engine as unknown as Awaited<ReturnType<typeof pawl<typeof tasks>>> }
  },
  client: async (t: Parameters<typeof fresh>[0]) => {
    const { engine, server } = await served(t)
    return { engine, app: connect({ server: server.url, tasks }) }
  },
}

for (const [kind, open] of Object.entries(apps)) {
  test(`a task is enqueued by its name, and its result has the type of its output (${kind})`, async t => {
    const { engine, app } = await open(t)
    const handle = await app.enqueue('resize', { file: 'a.png' }, { priority: 3 })
    const { type, priority } = await engine.task(handle.id)
    assert.deepEqual([type, priority], ['resize-picture', 3])
    await using _worker = startWorker(engine, [resize], { drainSeconds: 2 })
    const small: string = await handle.result()
    assert.equal(small, 'small a.png')
    const [queued] = await app.enqueueMany([{ type: 'resize', payload: { file: 'b.png' } }])
    assert.equal((await ended(engine, queued!.id)).output, 'small b.png')
  })

  test(`a payload is checked by the schema of its task, also where JSON Schema cannot say it (${kind})`, async t => {
    const { engine, app } = await open(t)
    const refused = { code: 'PAYLOAD_REFUSED', message: /file: must be a PNG/ }
    await assert.rejects(app.enqueue('resize', { file: 'a.gif' }), refused)
    const items = ['a.png', 'b.gif'].map(file => ({ type: 'resize' as const, payload: { file } }))
    await assert.rejects(app.enqueueMany(items), { ...refused, message: /tasks\[1\].*must be a PNG/ })
    assert.deepEqual((await engine.tasks()).items, [])
  })

  test(`a name that no task has is refused with a suggestion (${kind})`, async t => {
    const { engine, app } = await open(t)
    const refused = { code: 'OPTION_UNKNOWN', details: { at: 'tasks', option: 'resise', didYouMean: 'resize' } }
    await assert.rejects(app.enqueue('resise' as 'resize', { file: 'a.png' }), refused)
    await assert.rejects(app.enqueueMany([{ type: 'resise' as 'resize', payload: { file: 'a.png' } }]), refused)
    assert.deepEqual((await engine.tasks()).items, [])
  })
}

test('a handler spawns a task by its definition, into the stage that it names', async t => {
  const { engine } = await fresh(t)
  const split = defineTask({
    type: 'split',
    handler: (_, ctx) => {
      ctx.spawn(resize, { file: 'a.png' })
      ctx.spawn(resize, { file: 'b.png' }, { stage: 'later' })
    },
  })
  await using _worker = startWorker(engine, [split, resize], { drainSeconds: 2 })
  const stages = [
    { name: 'first', task: 'split', payload: 1 },
    { name: 'later', task: 'resize-picture', open: 'untilDone', queue: 'resize-picture' },
  ] as const
  const job = await engine.submit({ name: 'j', stages })
  const all = async () => (await engine.jobTasks(job.id, { order: 'oldest' })).items
  await eventually('all three are done', async () => {
    const states = (await all()).map(({ state }) => state)
    return states.length === 3 && states.every(state => state === 'succeeded')
  })
  assert.deepEqual((await all()).map(({ output }) => output).sort(), [null, 'small a.png', 'small b.png'])
})
