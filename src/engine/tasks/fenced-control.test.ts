/** A request that names an epoch is made on behalf of the lease, and is valid only while the lease is. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import { storyOf, taskIn } from '../../../test/harness/task-in.ts'

const requests = {
  cancel: { mode: 'hard' } as const,
  deadLetter: { reasonCode: 'policy_violation' } as const,
}

for (const [name, options] of Object.entries(requests) as [keyof typeof requests, never][]) {
  for (const state of ['assigned', 'running'] as const) {
    test(`${name} in the name of the lease ends a task that is ${state}, in one move`, async t => {
      const run = await fresh(t)
      const { id, epoch } = await taskIn(run, state)
      const before = (await storyOf(run, id)).length
      await run.engine[name](id, { ...(options as object), epoch, actor: 'worker:w' } as never)
      const [move, ...more] = (await storyOf(run, id)).slice(before)
      assert.match(move!, name === 'cancel' ? /^cancelled by worker:w/ : /^dead_lettered by worker:w: holder$/)
      assert.deepEqual(more, [])
    })
  }

  test(`${name} in the name of a lease that is lost changes nothing, whoever holds the task now`, async t => {
    const run = await fresh(t)
    const { engine } = run
    const { id, epoch, queue } = await taskIn(run, 'retrying')
    const ask = () => engine[name](id, { ...(options as object), epoch } as never)
    for (const owner of ['nobody', 'another']) {
      if (owner === 'another') await run.sync({ worker: 'heir', queues: [queue], claim: 1 })
      const before = await engine.task(id)
      await assert.rejects(ask(), { code: 'LEASE_LOST', status: 409 }, owner)
      assert.deepEqual(await engine.task(id), before)
    }
  })
}
