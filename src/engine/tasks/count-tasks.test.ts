import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import { claim, say } from '../../../test/harness/jobs.ts'

test('the tasks of a job are counted by their states, and by whether their time has come', async t => {
  const f = await fresh(t)
  const retry = { delaySeconds: 60, jitter: false }
  const { id } = await f.engine.submit({
    name: 'x',
    stages: [
      { name: 'a', task: 'a', payloads: [1, 2, 3, 4, 5], failFast: false, retry },
      { name: 'b', task: 'b' },
    ],
  })
  const [good, bad, failed] = await claim(f, ['a'], 4)
  await say(f, [good!], 'succeeded')
  await say(f, [bad!], 'permanent')
  await say(f, [failed!], { outcome: 'failed', error: { message: 'no' } })
  const counts = async () => {
    const rows = await f.engine.internals.countTasks(id)
    return Object.fromEntries(rows.map(({ state, due, count }) => [due ? state : `${state} later`, count]))
  }
  const same = { succeeded: 1, failed: 1, assigned: 1, queued: 1, blocked: 1 }
  assert.deepEqual(await counts(), { ...same, 'retrying later': 1 })
  await f.advance(61)
  assert.deepEqual(await counts(), { ...same, retrying: 1 })
  const { stages } = await f.engine.job(id)
  assert.deepEqual(await f.engine.stageCounts(stages[1]!.id), { blocked: 1 })
  await assert.rejects(f.engine.stageCounts('x'), { code: 'STAGE_NOT_FOUND' })
  await assert.rejects(f.engine.internals.countTasks('x'), { code: 'JOB_NOT_FOUND' })
})
