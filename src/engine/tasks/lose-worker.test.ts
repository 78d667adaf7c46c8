import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needsServer } from '../../../test/harness/databases.ts'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { openTransaction } from '../../../test/harness/open-transaction.ts'

/** A worker without heartbeats, whose leases last for a day: one task has started, the other has not. */
async function workerWithoutHeartbeats(run: Fresh, worker: string) {
  const options = { leaseSeconds: 86_400, heartbeatSeconds: null, queue: 'q' }
  await run.engine.enqueueMany([1, 2].map(payload => ({ type: 't', payload, ...options })))
  const { claimed } = await run.sync({ worker, queues: ['q'], claim: 2 })
  const [running, assigned] = claimed
  await run.engine.start(running!.id, running!.epoch)
  return { running: running!, assigned: assigned! }
}

test('the tasks of a worker that is declared lost come back at once, and say why', async t => {
  const run = await fresh(t)
  const { engine } = run
  const { running, assigned } = await workerWithoutHeartbeats(run, 'node-1/pod-1')
  const answer = await engine.loseWorker('node-1/pod-1', { reason: 'The node burned down.', actor: 'ada' })
  assert.deepEqual(answer.worker, 'node-1/pod-1')
  assert.deepEqual([...answer.tasks].sort(), [running.id, assigned.id].sort())
  const [begun, waiting] = [await engine.task(running.id), await engine.task(assigned.id)]
  assert.deepEqual([begun.state, begun.losses, begun.error?.message], ['retrying', 1, 'The node burned down.'])
  assert.deepEqual([waiting.state, waiting.losses], ['retrying', 0])
  const lost = (await engine.taskEvents(running.id)).items.at(-1)!
  assert.deepEqual([lost.actor, lost.cause], ['ada', 'lease_lost'])
})

test('a worker that was declared lost and lives can finish nothing that it held', async t => {
  const run = await fresh(t)
  const { running } = await workerWithoutHeartbeats(run, 'w-1')
  await run.engine.loseWorker('w-1')
  await assert.rejects(run.engine.succeed(running.id, running.epoch), { code: 'LEASE_LOST' })
  const { claimed } = await run.sync({ worker: 'w-2', queues: ['q'], claim: 2 })
  assert.ok(claimed.some(({ id, epoch }) => id === running.id && epoch === 2))
})

test('a pod is known by its own name too, and no other worker loses anything', async t => {
  const run = await fresh(t)
  const mine = await workerWithoutHeartbeats(run, 'node-1/words-x7k2p')
  const { running: other } = await workerWithoutHeartbeats(run, 'node-1/other-words-x7k2p')
  const { tasks } = await run.engine.loseWorker('words-x7k2p')
  assert.deepEqual([...tasks].sort(), [mine.running.id, mine.assigned.id].sort())
  assert.equal((await run.engine.task(other.id)).state, 'running')
})

test('a task whose worker is declared lost on its last try ends', async t => {
  const run = await fresh(t)
  const stage = {
    name: 's',
    task: 't',
    retry: { attempts: 1, losses: null },
    deadLetter: 'never',
  } as const
  const { id } = await run.engine.submit({ name: 'j', stages: [stage] })
  const [task] = await run.engine.claims({ worker: 'w-1', queues: ['t'], start: true })
  await run.engine.loseWorker('w-1')
  assert.equal((await run.engine.task(task!.id)).state, 'failed')
  assert.equal((await run.engine.job(id)).state, 'failed')
})

test('the same request sent again under its idempotency key has its first answer, and takes nothing twice', async t => {
  const run = await fresh(t)
  await workerWithoutHeartbeats(run, 'w-1')
  const call = { idempotencyKey: 'once' }
  const first = await run.engine.loseWorker('w-1', call)
  const { claimed } = await run.sync({ worker: 'w-1', queues: ['q'], claim: 1 })
  assert.deepEqual(await run.engine.loseWorker('w-1', call), first)
  assert.equal((await run.engine.task(claimed[0]!.id)).state, 'assigned')
})

test('a worker that holds nothing loses nothing, and a name that cannot be one is refused', async t => {
  const { engine } = await fresh(t)
  assert.deepEqual(await engine.loseWorker('nobody'), { worker: 'nobody', tasks: [] })
  await assert.rejects(engine.loseWorker(''), { code: 'OPTION_INVALID', message: /worker/ })
  await assert.rejects(engine.loseWorker('w', { resaon: 'x' } as object), { code: 'OPTION_UNKNOWN' })
})

test('a short name that several workers answer to is refused, and nothing is taken from any of them', async t => {
  const run = await fresh(t)
  const [one] = [await workerWithoutHeartbeats(run, 'team-a/w1'), await workerWithoutHeartbeats(run, 'team-b/w1')]
  await assert.rejects(run.engine.loseWorker('w1'), ({ code, details }) => {
    assert.deepEqual([code, [...details.workers].sort()], ['WORKER_AMBIGUOUS', ['team-a/w1', 'team-b/w1']])
    return true
  })
  assert.equal((await run.engine.task(one.running.id)).state, 'running')
  assert.equal((await run.engine.loseWorker('team-a/w1')).tasks.length, 2)
})

test('whoever declares a worker lost while somebody holds one of its tasks is told that the store is busy', {
  ...needsServer(),
}, async t => {
  const run = await fresh(t)
  const { running } = await workerWithoutHeartbeats(run, 'w-1')
  const other = await openTransaction(run.sql)
  await other.tx`select from pawl.task where id = ${running.id}::uuid for update`
  await assert.rejects(run.engine.loseWorker('w-1'), { code: 'STORE_BUSY' })
  await other.commit()
  assert.equal((await run.engine.loseWorker('w-1')).tasks.length, 2)
})
