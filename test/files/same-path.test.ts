/** Two datums that write the same path, with workers as users start them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commandFleet, fill, hurried, textsIn } from '../harness/command-fleet.ts'
import { needsServer } from '../harness/databases.ts'
import { eventually } from '../harness/eventually.ts'

const bounded = { timeout: 600_000, ...needsServer() }
const inputs = { doc: { uri: 's3://bucket/in/' } }

test(
  'two datums that write the same path: the second fails with an error that names both, and nothing is overwritten',
  bounded,
  async t => {
    const fleet = await commandFleet(t)
    const { engine, bucket } = fleet
    await fill(t, bucket, { 'in/a': 'of a', 'in/b': 'of b' })
    fleet.startServer()
    for (const name of ['w1', 'w2']) fleet.startWorker(name)
    const run = { command: ['sh', '-c', 'cat "$PAWL_IN"/doc/* > "$PAWL_OUT/same"'] }
    const { id } = await engine.submit({
      name: 'clash',
      stages: [{ name: 's', run, inputs, outputs: 's3://bucket/out/', failFast: false, ...hurried }],
    })
    const { state } = await fleet.jobEnds(id)
    assert.equal(state, 'failed')
    const tasks = (await engine.tasks({ jobId: id })).items
    const [winner, loser] = [
      tasks.find(task => task.state === 'succeeded')!,
      tasks.find(task => task.state !== 'succeeded')!,
    ]
    assert.deepEqual([winner?.state, loser?.state], ['succeeded', 'failed'])
    assert.equal(loser.error?.step, 'output')
    for (const named of [winner.id, loser.id, 's3://bucket/out/same'])
      assert.match(loser.error!.message, new RegExp(named))
    const { path } = (winner.payload as { inputs: { path: string }[] }).inputs[0]!
    await eventually('all uploads are swept', async () => {
      await fleet.advance(61)
      return Object.keys(await textsIn(bucket, 'out/')).length === 1
    })
    assert.deepEqual(await textsIn(bucket, 'out/'), { same: `of ${path}` })
  },
)
