/** Every operation for which a key can be limited to queues, with a key for other queues and with one for these. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { connect, type PawlClient } from '../../src/client/client.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { Problem } from '../../src/kernel/problem.ts'
import { may } from '../../src/kernel/role.ts'
import type { OperationEntry } from '../../src/protocol/operation.ts'
import { namedOperations, type OperationName } from '../../src/protocol/operations.ts'
import { served } from '../harness/served.ts'

/** Prepares an entity in the queue `theirs`. Returns the request that is sent about it. */
type Ask = (engine: Engine) => Promise<(client: PawlClient) => Promise<unknown>>

const openStage = async (engine: Engine) => {
  const stage = { name: 's', task: 'theirs', open: true }
  const job = await engine.submit({ name: 'j', open: true, stages: [stage] })
  return { jobId: job.id, stageId: job.stages[0]!.id }
}

const held =
  (ask: (client: PawlClient, id: string, epoch: number) => Promise<unknown>): Ask =>
  async engine => {
    await engine.enqueue('theirs', 1)
    const [task] = await engine.claims({ worker: 'w', queues: ['theirs'] })
    return client => ask(client, task!.id, task!.epoch)
  }

const always =
  (ask: (client: PawlClient) => Promise<unknown>): Ask =>
  async () =>
    ask

const file = { name: 'a', uri: 'file:///a', state: 'registered' as const }

/** Every operation that is not for readers, operators or admins. */
const asks: Partial<Record<OperationName, Ask>> = {
  submit: always(client => client.submit({ name: 'j', stages: [{ name: 's', task: 'theirs' }] })),
  sealJob: async engine => {
    const { jobId } = await openStage(engine)
    return client => client.sealJob(jobId)
  },
  addStages: async engine => {
    const { jobId } = await openStage(engine)
    return client => client.addStages(jobId, [{ name: 'more', task: 'theirs' }])
  },
  sealStage: async engine => {
    const { stageId } = await openStage(engine)
    return client => client.sealStage(stageId)
  },
  addTasks: async engine => {
    const { stageId } = await openStage(engine)
    return client => client.addTasks(stageId, [{ payload: 1 }])
  },
  stageJob: async engine => {
    const { stageId } = await openStage(engine)
    return client => client.stageJob(stageId)
  },
  stageFiles: async engine => {
    const { stageId } = await openStage(engine)
    return client => client.stageFiles(stageId)
  },
  enqueueMany: always(client => client.enqueueMany([{ type: 'theirs' }])),
  sync: held((client, id, epoch) => client.sync({ worker: 'w', started: [{ id, epoch }] })),
  claims: always(client => client.claims({ worker: 'w', queues: ['theirs'] })),
  start: held((client, id, epoch) => client.start(id, epoch)),
  heartbeat: held((client, id, epoch) => client.heartbeat(id, epoch)),
  succeed: held((client, id, epoch) => client.succeed(id, epoch)),
  fail: held((client, id, epoch) => client.fail(id, epoch, { error: { message: 'no' } })),
  skip: held((client, id, epoch) => client.skip(id, epoch)),
  release: held((client, id, epoch) => client.release(id, epoch)),
  cancelled: held((client, id, epoch) => client.cancelled(id, epoch)),
  reportArtifacts: held((client, id, epoch) => client.reportArtifacts(id, epoch, { artifacts: [file] })),
  putTaskType: always(client => client.putTaskType('theirs', { timeoutSeconds: 5 })),
}

const isBound = ({ permission }: OperationEntry) =>
  permission !== 'read' && !may('viewer', permission) && may(['producer', 'worker'], permission)

test('every operation that queues, claims, reports or teaches is listed in this test', () => {
  const bound = namedOperations.filter(([, operation]) => isBound(operation)).map(([name]) => name)
  assert.deepEqual(Object.keys(asks).sort(), bound.sort())
})

test('a key for other queues queues, claims, reports and teaches nothing here, and one for this queue does', async t => {
  const { engine, server } = await served(t)
  const clientFor = async (queue: string) => {
    const { secret } = await engine.createKey({ name: queue, roles: ['producer', 'worker'], queues: [queue] })
    return connect({ server: server.url, key: secret, patienceSeconds: 0 })
  }
  const [others, these] = [await clientFor('mine'), await clientFor('theirs')]
  const code = (sent: Promise<unknown>) =>
    sent.then(
      () => 'done',
      error => (error instanceof Problem ? error.code : Promise.reject(error)),
    )
  for (const [operation, ask] of Object.entries(asks)) {
    const send = await ask(engine)
    assert.equal(await code(send(others)), 'KEY_REFUSED', operation)
    assert.notEqual(await code(send(these)), 'KEY_REFUSED', operation)
  }
})

test('a producer cannot add stages of its own queues to a job of others', async t => {
  const { engine, server } = await served(t, {
    server: { keysOnly: true },
    before: engine => engine.createKey({ name: 'first', role: 'admin' }),
  })
  const { jobId } = await openStage(engine)
  const { secret } = await engine.createKey({ name: 'mine', role: 'producer', queues: ['mine'] })
  const client = connect({ server: server.url, key: secret, patienceSeconds: 0 })
  const stages = [{ name: 'more', task: 'mine' }]
  await assert.rejects(client.addStages(jobId, stages), { code: 'KEY_REFUSED' })
  const own = await engine.submit({ name: 'j', open: true, stages: [{ name: 's', task: 'mine' }] })
  await client.addStages(own.id, stages)
  const empty = await engine.submit({ name: 'j', open: true })
  await client.addStages(empty.id, stages)
})

test('a worker key that knows the session of another worker is not given what that one has claimed', async t => {
  const { engine, server } = await served(t)
  const workerFor = async (queue: string) => {
    const { secret } = await engine.createKey({ name: queue, role: 'worker', queues: [queue] })
    return connect({ server: server.url, key: secret, patienceSeconds: 0 })
  }
  const [mine, theirs] = [await workerFor('mine'), await workerFor('theirs')]
  await engine.enqueue('theirs', 'for their eyes')
  const session = randomUUID()
  const sync = (client: PawlClient, queue: string) =>
    client.sync({ worker: queue, session, syncId: 'first', queues: [queue], claim: 1 })
  const claims = (client: PawlClient, queue: string) =>
    client.claims({ worker: queue, session, queues: [queue], unlessHolding: true })
  const [won] = (await sync(theirs, 'theirs')).claimed
  assert.deepEqual((await sync(mine, 'mine')).claimed, [])
  assert.deepEqual(await claims(mine, 'mine'), [])
  const again = [...(await sync(theirs, 'theirs')).claimed, ...(await claims(theirs, 'theirs'))]
  assert.deepEqual(
    again.map(({ id, epoch }) => ({ id, epoch })),
    [won, won].map(task => ({ id: task!.id, epoch: 1 })),
  )
})
