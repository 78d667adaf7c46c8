import { setTimeout as sleep } from 'node:timers/promises'
import { type Measure, payload } from '../contender.ts'
import { milliseconds, table, whole } from '../markdown.ts'
import { type OwnStore, openOwnStore } from '../own-store.ts'
import { median } from '../statistics.ts'
import { submitSmallJobs } from '../work.ts'

interface Sizes {
  /** Numbers of tasks of a stage. */
  readonly stage: readonly number[]
  /** Numbers of stages of a chain. */
  readonly chain: readonly number[]
  /** Numbers of concurrent jobs. */
  readonly jobs: readonly number[]
  readonly paused: number
}

const full: Sizes = { stage: [1000, 10_000, 100_000], chain: [100, 1000], jobs: [100, 1000, 10_000], paused: 1_000_000 }
const small: Sizes = { stage: [100, 1000, 3000], chain: [10, 50], jobs: [20, 100, 200], paused: 5_000 }

/**
 * The cost of jobs, which must not grow with their size: large jobs, long jobs, many jobs, and the pause of a very
 * large one.
 */
export const measure: Measure = {
  name: 'jobs',
  async run({ cluster, quick, deadline }) {
    const sizes = quick ? small : full
    const rows: string[][] = []
    for (const [name, part] of Object.entries({ large, chain, many, pause })) {
      const store = await openOwnStore(cluster, `jobs-${name}`)
      try {
        if (Date.now() > deadline) rows.push([name, 'left out: no time', ''])
        else rows.push(...(await part(store, sizes)))
      } finally {
        await store.close()
      }
    }
    return { title: 'Jobs', markdown: table(['', '', 'goal'], rows) }
  },
}

/** Stages with more and more tasks. The cost per task must not depend on their number. */
async function large(store: OwnStore, { stage }: Sizes): Promise<string[][]> {
  const most = Math.max(...stage)
  const rows: string[][] = []
  const costs: number[] = []
  await warmUp(store)
  for (const tasks of stage) {
    // Small ones are so fast that several are measured.
    const times = tasks === most ? 1 : 5
    const taken: number[] = []
    for (let time = 0; time < times; time++) {
      const { id, seconds } = await submitTasks(store, tasks)
      await store.tidy()
      const progress = await medianOf(20, () => store.engine.job(id))
      taken.push(1000 / (await store.drain(tasks)))
      await mustBe(store, id, 'succeeded')
      if (tasks < most) continue
      rows.push(
        [`submit a job of ${whole(tasks)} tasks`, `${seconds.toFixed(2)} s`, '< 5 s for 100,000'],
        ['read its progress, median', milliseconds(progress), '< 50 ms'],
      )
    }
    costs.push(median(taken))
  }
  return [...rows, ...costRows(costs, stage, size => `a task in a stage of ${whole(size)}`)]
}

async function submitTasks({ engine }: OwnStore, tasks: number): Promise<{ id: string; seconds: number }> {
  const payloads = Array.from({ length: tasks }, (_, index) => payload(index))
  const began = performance.now()
  const { id } = await engine.submit({ name: 'large', stages: [{ name: 'all', task: 'noop', payloads }] })
  return { id, seconds: (performance.now() - began) / 1000 }
}

/** Stages of one task each, one after the other. */
async function chain(store: OwnStore, { chain }: Sizes): Promise<string[][]> {
  const costs: number[] = []
  await warmUp(store)
  for (const length of chain) {
    const stages = Array.from({ length }, (_, index) => ({ name: `stage-${index}`, task: 'noop' }))
    const { id } = await store.engine.submit({ name: 'chain', stages })
    costs.push(1000 / (await store.drain(length)))
    await mustBe(store, id, 'succeeded')
  }
  return costRows(costs, chain, size => `a stage of one task in a chain of ${whole(size)}`)
}

/** Small jobs of three stages with one task each. All are submitted before the first task is claimed. */
async function many(store: OwnStore, { jobs }: Sizes): Promise<string[][]> {
  const costs: number[] = []
  await warmUp(store)
  for (const count of jobs) {
    await submitSmallJobs(store.engine, count)
    await store.tidy()
    costs.push(1000 / (await store.drain(count * 3)))
  }
  return [...costRows(costs, jobs, size => `a task with ${whole(size)} of them at once`)]
}

/** The first jobs are slower, in the process and in the database, and are not measured. */
async function warmUp(store: OwnStore): Promise<void> {
  await submitSmallJobs(store.engine, 50)
  await store.drain(150)
}

function costRows(costs: readonly number[], sizes: readonly number[], name: (size: number) => string): string[][] {
  return sizes.map((size, index) => {
    const ratio = costs[index]! / costs[0]!
    return [name(size), `${costs[index]!.toFixed(3)} ms${index === 0 ? '' : ` (${ratio.toFixed(2)}x)`}`, 'flat']
  })
}

const tasksPerCall = 10_000

/** The pause of a job with very many queued tasks, and its effect on claims from another queue. */
async function pause(store: OwnStore, { paused }: Sizes): Promise<string[][]> {
  const { engine } = store
  const { id, stages } = await engine.submit({ name: 'vast', stages: [{ name: 'all', task: 'vast', open: true }] })
  for (let added = 0; added < paused; added += tasksPerCall) {
    const length = Math.min(tasksPerCall, paused - added)
    await engine.addTasks(
      stages[0]!.id,
      Array.from({ length }, (_, index) => ({ payload: payload(index) })),
    )
  }
  await store.fill(20_000)
  await store.tidy()
  const claim = async () => {
    const { claimed } = await engine.sync({ worker: 'bench', queues: ['vast', 'noop'], claim: 10 })
    if (claimed.length !== 10) throw new Error(`a claim of 10 won ${claimed.length}`)
    return claimed
  }
  const before = await medianOf(100, claim)
  const during: number[] = []
  let isPausing = true
  const claiming = (async () => {
    while (isPausing) during.push(await timed(claim))
  })()
  const pauses: number[] = []
  for (let n = 0; n < 11; n++) {
    pauses.push(await timed(() => engine.pauseJob(id)))
    await sleep(20)
    await engine.resumeJob(id)
    await sleep(20)
  }
  isPausing = false
  await claiming
  await engine.pauseJob(id)
  const claimed: string[] = []
  const after = await medianOf(100, async () => claimed.push(...(await claim()).map(({ type }) => type)))
  if (claimed.includes('vast')) throw new Error('a task of the paused job was claimed')
  return [
    [`pause a job of ${whole(paused)} queued tasks, median`, milliseconds(median(pauses)), ''],
    ['a claim of 10 from its queue and another, before', milliseconds(before), ''],
    ['… while it is paused and resumed', milliseconds(median(during)), ''],
    ['… after, with all of them paused ahead of it', milliseconds(after), ''],
  ]
}

async function mustBe({ engine }: OwnStore, id: string, state: string): Promise<void> {
  const job = await engine.job(id)
  if (job.state !== state) throw new Error(`the job is ${job.state}, not ${state}`)
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}

async function medianOf(times: number, work: () => Promise<unknown>): Promise<number> {
  const took: number[] = []
  for (let time = 0; time < times; time++) took.push(await timed(work))
  return median(took)
}
