import { retention } from '../../dist/babysitter/chores.js'
import { engineBehind } from '../../dist/engine/engine.js'
import { startCluster } from '../../test/harness/cluster.ts'
import { type Figure, type Measure, payload } from '../contender.ts'
import { reasonOf } from '../entrants.ts'
import { addEndedTasks } from '../large-store.ts'
import { table, whole } from '../markdown.ts'
import { closeAfterMeasure, type OwnStore, openOwnStore } from '../own-store.ts'
import { median } from '../statistics.ts'
import { secondsOf } from '../work.ts'

/** Repetitions of an operation stop after this time. */
const actSeconds = 20

interface Act {
  /** The goal that it is compared with. */
  about: 'claim' | 'enqueue' | 'stage' | 'list'
  name: string
  times: number
  run(store: OwnStore, ended: { jobId: string; stageId: string }): Promise<unknown>
}

const acts: Act[] = [
  { about: 'claim', name: 'claim 1', times: 60, run: store => claim(store, 1) },
  { about: 'claim', name: 'claim 100', times: 60, run: store => claim(store, 100) },
  { about: 'enqueue', name: 'enqueue 1', times: 100, run: ({ engine }) => engine.enqueue('noop', payload(1)) },
  { about: 'enqueue', name: 'enqueue 5,000', times: 10, run: store => store.fill(5000) },
  {
    about: 'stage',
    name: 'read a stage of 1,000 tasks',
    times: 40,
    run: ({ engine }, { stageId }) => engine.stage(stageId),
  },
  { about: 'stage', name: '… its job', times: 40, run: ({ engine }, { jobId }) => engine.job(jobId) },
  {
    about: 'stage',
    name: '… its first 50 tasks',
    times: 40,
    run: ({ engine }, { stageId }) => engine.stageTasks(stageId, { limit: 50 }),
  },
  { about: 'list', name: 'list 50 tasks', times: 20, run: ({ engine }) => engine.tasks({ limit: 50 }) },
  {
    about: 'list',
    name: '… that succeeded',
    times: 20,
    run: ({ engine }) => engine.tasks({ state: 'succeeded', limit: 50 }),
  },
  { about: 'list', name: '… of a queue', times: 20, run: ({ engine }) => engine.tasks({ queue: 'noop', limit: 50 }) },
  {
    about: 'list',
    name: '… that are queued',
    times: 20,
    run: ({ engine }) => engine.tasks({ state: 'queued', limit: 50 }),
  },
  {
    about: 'list',
    name: '… that are running',
    times: 20,
    run: ({ engine }) => engine.tasks({ state: 'running', limit: 50 }),
  },
  { about: 'list', name: 'list 50 jobs', times: 20, run: ({ engine }) => engine.jobs({ limit: 50 }) },
]

/** The same operations in an empty store and in one with very many ended tasks, and the speed of retention. */
export const measure: Measure = {
  name: 'large-store',
  async run({ settings, quick }) {
    const count = quick ? 50_000 : 10_000_000
    // A cluster of its own: its rows are written without a log, and its folder is removed at the end.
    const cluster = await startCluster({
      version: 18,
      settings: { ...settings, wal_level: 'minimal', max_wal_senders: '0', max_wal_size: '16GB' },
    })
    const stop = closeAfterMeasure(() => cluster.stop())
    try {
      const empty = await openOwnStore(cluster, 'empty-store')
      const large = await openOwnStore(cluster, 'large-store')
      await addEndedTasks(large, count)
      const faults = new Set<string>()
      const [before, after] = await measureActs([empty, large], faults)
      const drained = await drainRate(large, quick ? 5000 : 50_000)
      const removed = await retentionRate(large, quick ? 2 : 20)
      await empty.close()
      await large.close()

      const ratios = acts.map((_, index) => after[index]! / before[index]!)
      const worst = (about: Act['about']) => Math.max(...ratios.filter((_, index) => acts[index]!.about === about))
      const figures: Figure[] = (['claim', 'enqueue', 'stage', 'list'] as const).map(about => ({
        name: `large-store.${about}`,
        value: worst(about),
        unit: 'x',
        better: 'lower',
      }))
      figures.push(
        { name: 'large-store.drain', value: drained, unit: 'tasks/s', better: 'higher' },
        { name: 'large-store.retention', value: removed, unit: 'tasks/s', better: 'higher' },
      )
      const rows = acts.map(({ name }, index) => [
        name,
        `${before[index]!.toFixed(2)} ms`,
        `${after[index]!.toFixed(2)} ms`,
        `${ratios[index]!.toFixed(2)}x`,
      ])
      const markdown = `${table(['median', 'empty store', `${whole(count)} ended tasks`, ''], rows)}

A drain of this store runs at ${whole(drained)} tasks/s. Retention removes ${whole(removed)} standalone tasks/s. Half of the ended
tasks are standalone, half belong to jobs of one stage of 1,000 tasks. ${[...faults].join(' ')}
`
      return { title: 'A large store', markdown, figures }
    } finally {
      await stop()
    }
  },
}

/** Medians in milliseconds of both stores, in the order of the acts. The stores take turns. */
async function measureActs(stores: [OwnStore, OwnStore], faults: Set<string>): Promise<[number[], number[]]> {
  const prepared = await Promise.all(stores.map(prepare))
  const medians: [number[], number[]] = [[], []]
  for (const { name, times, run } of acts) {
    const took: [number[], number[]] = [[], []]
    // The first calls plan the statements.
    const began = performance.now()
    const isLong = () => took[0].length > 0 && performance.now() - began > actSeconds * 1000
    for (let time = -2; time < times && !isLong(); time++) {
      for (const [index, store] of stores.entries()) {
        // An operation that the engine gives up counts with its time, and is named.
        const seconds = await secondsOf(() =>
          run(store, prepared[index]!).catch((error: unknown) => faults.add(`${name}: ${reasonOf(error)}`)),
        )
        if (time >= 0 || seconds > actSeconds / 4) took[index]!.push(seconds * 1000)
      }
    }
    for (const [index, times] of took.entries()) medians[index]!.push(median(times))
  }
  return medians
}

const jobsOfPage = 60

/** Both stores get the same queued tasks, the same stage to read, and more jobs than a page shows. */
async function prepare(store: OwnStore): Promise<{ jobId: string; stageId: string }> {
  const payloads = Array.from({ length: 1000 }, (_, index) => payload(index))
  const { id, stages } = await store.engine.submit({ name: 'read', stages: [{ name: 'only', task: 'noop', payloads }] })
  await store.drain(1000)
  const job = { name: 'page', stages: [{ name: 'only', task: 'noop', payloads: [] }] }
  await Promise.all(Array.from({ length: jobsOfPage }, () => store.engine.submit(job)))
  await store.fill(20_000)
  await store.client.query('vacuum analyze pawl.due, pawl.change, pawl.claim')
  return { jobId: id, stageId: stages[0]!.id }
}

async function claim({ engine }: OwnStore, count: number): Promise<void> {
  const { claimed } = await engine.sync({ worker: 'bench', queues: ['noop'], claim: count })
  if (claimed.length !== count) throw new Error(`a claim of ${count} won ${claimed.length}`)
}

/** More tasks are queued than claimed, because other operations have left some. */
async function drainRate(store: OwnStore, count: number): Promise<number> {
  await store.fill(count)
  return store.drain(count)
}

/** Tasks per second that the retention chore removes, for some seconds at most. */
async function retentionRate({ engine }: OwnStore, seconds: number): Promise<number> {
  const { context } = engineBehind(engine)
  const chore = retention()
  const began = performance.now()
  const elapsed = () => (performance.now() - began) / 1000
  let removed = 0
  for (let more = true; more && elapsed() < seconds; ) {
    const did = await chore.run(context)
    removed += Number(did.removed)
    more = did.more === true
  }
  return removed / elapsed()
}
