/** The cost and coverage of one check of a cluster: shared queues, unrecorded Jobs, and nothing to do. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Chore, keepDoing } from '../../src/babysitter/chore.ts'
import { runInKubernetes } from '../../src/babysitter/run-in-kubernetes.ts'
import { newId } from '../../src/kernel/id.ts'
import { jobNameOf } from '../../src/runners/names.ts'
import { findLeaseHolders } from '../../src/store/jobs/runs.ts'
import { eventually } from '../harness/eventually.ts'
import { fresh } from '../harness/fresh.ts'
import { runnerOn, stageToRun, workerNameOf } from './runner-on.ts'
import { startSmallApiServer } from './small-api-server.ts'

const run = { command: ['true'] }
const kubernetes = { image: 'debian:12' }

async function cluster(t: TestContext, namespaces = ['pawl']) {
  const f = await fresh(t)
  const server = await startSmallApiServer(t, namespaces)
  const runner = await runnerOn(t, server.url)
  const { context } = f.engine
  const chore = runInKubernetes(runner)
  /** A stage whose Job was created by a server that was killed before it could record it. */
  const unnoted = async () => {
    const { id, stages } = await f.engine.submit({ name: 'j', stages: [{ name: 's', run, runner: { kubernetes } }] })
    const stage = { stageId: stages[0]!.id, round: 1 }
    await runner.ensure([stageToRun(stage)])
    return { id, stageId: stage.stageId, name: jobNameOf(stage) }
  }
  const jobs = () => server.cluster.list('jobs', 'pawl').map(({ metadata }) => metadata.name)
  const jobLists = () => server.asked.filter(({ resource, verb }) => resource === 'jobs' && verb === 'list')
  return { ...f, server, runner, context, chore, runChore: () => chore.run(context), unnoted, jobs, jobLists }
}

test('a Job whose server was killed before it could note it goes when its stage is over, though nothing else runs', async t => {
  const { engine, runChore, unnoted, jobs } = await cluster(t)
  const { id, name } = await unnoted()
  await engine.cancelJob(id, { mode: 'hard' })
  assert.deepEqual(jobs(), [name])
  await runChore()
  assert.deepEqual(jobs(), [])
})

test('a Job that began while the cluster was looked at stays, one of a paused job too, and one of another store', async t => {
  const { engine, context, runner, unnoted, jobs } = await cluster(t)
  const names: string[] = []
  const chore = runInKubernetes({
    ...runner,
    async inspect(namespaces) {
      names.push((await unnoted()).name)
      const paused = await unnoted()
      names.push(paused.name)
      await engine.pauseJob(paused.id)
      const foreign = stageToRun()
      names.push(jobNameOf(foreign))
      await runner.ensure([foreign])
      return runner.inspect(namespaces)
    },
  })
  await chore.run(context)
  assert.deepEqual(jobs(), names.sort())
})

test('where nothing runs the cluster is looked at once a minute, and not at every turn', async t => {
  const { runChore, jobLists, advance } = await cluster(t)
  for (let turn = 0; turn < 3; turn++) await runChore()
  assert.equal(jobLists().length, 1)
  await advance(59)
  await runChore()
  assert.equal(jobLists().length, 2)
})

test('tasks that end do not make the cluster be looked at more often', async t => {
  const { context, chore, unnoted, jobLists } = await cluster(t)
  await unnoted()
  const ending = new AbortController()
  t.after(() => ending.abort())
  let wakes = 0
  const witness: Chore = {
    name: 'witness',
    everySeconds: 3600,
    wakeSignal: ({ fileSignal }) => fileSignal,
    run: async () => ({ wakes: wakes++ }),
  }
  const both = [{ ...chore, everySeconds: 3600 }, witness].map(each => keepDoing(each, context, ending.signal))
  await eventually('it has looked', () => jobLists().length === 1)
  await eventually('the bell has rung often', () => {
    context.fileSignal.notify()
    return wakes > 20
  })
  ending.abort()
  await Promise.all(both)
  assert.equal(jobLists().length, 1)
})

test('a pod that takes tasks of a stage in another namespace, from the queue that both share, is not taken for lost', async t => {
  const { engine, runChore, server } = await cluster(t, ['pawl', 'n1', 'n2'])
  const stageIn = (namespace: string) => ({
    name: namespace,
    run,
    queue: 'both',
    runner: { kubernetes: { ...kubernetes, namespace } },
  })
  await engine.submit({ name: 'j', open: true, stages: [stageIn('n1')] })
  await runChore()
  const pod = server.cluster.list('pods', 'n1')[0]!
  const worker = workerNameOf({ node: String(pod.spec.nodeName), name: pod.metadata.name })
  await engine.submit({ name: 'j2', stages: [stageIn('n2')] })
  await runChore()
  const { claimed } = await engine.sync({ worker, queues: ['both'], claim: 2 })
  assert.equal(claimed.length, 2)
  for (const { id, epoch } of claimed) await engine.start(id, epoch)
  await runChore()
  const losses = async () => Promise.all(claimed.map(async ({ id }) => (await engine.task(id)).losses))
  assert.deepEqual(await losses(), [0, 0])
  server.cluster.vanishPod(pod)
  await runChore()
  assert.deepEqual(await losses(), [1, 1])
})

test('a worker that is called like a pod of a Job that nobody knows keeps its tasks', async t => {
  const { engine, runChore } = await cluster(t)
  const { stages } = await engine.submit({ name: 'j', stages: [{ name: 's', run, runner: { kubernetes } }] })
  await runChore()
  const worker = workerNameOf({ node: 'node-1', name: `${jobNameOf({ stageId: newId(), round: 1 })}-abcde` })
  const { claimed } = await engine.sync({ worker, queues: [stages[0]!.queue], claim: 1 })
  await engine.start(claimed[0]!.id, claimed[0]!.epoch)
  await runChore()
  assert.equal((await engine.task(claimed[0]!.id)).losses, 0)
})

test('to find who holds tasks of a stage reads the tasks that are held, and not all that it has', async t => {
  const { engine, sql } = await fresh(t)
  const payloads = Array.from({ length: 2000 }, (_, n) => n)
  const { stages } = await engine.submit({ name: 'many', stages: [{ name: 's', task: 'work', payloads }] })
  await engine.sync({ worker: 'w', queues: ['work'], claim: 3 })
  const read = await sql.begin(async tx => {
    const before = await tasksRead(tx)
    assert.equal((await findLeaseHolders(tx, [stages[0]!.id])).length, 3)
    return (await tasksRead(tx)) - before
  })
  assert.ok(read < 100, `it read ${read}`)
})

/** Task rows read by this transaction so far. */
async function tasksRead(tx: Parameters<typeof findLeaseHolders>[0]): Promise<number> {
  const [row] = await tx<{ read: number }>`
    select (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as read
      from pg_stat_xact_user_tables where relid = 'pawl.task'::regclass`
  return row!.read
}
