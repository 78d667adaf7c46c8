import { setTimeout as sleep } from 'node:timers/promises'
import { type Measure, payload } from '../contender.ts'
import { type OwnStore, openOwnStore } from '../own-store.ts'
import { milliseconds, table, whole } from '../report.ts'
import { median } from '../statistics.ts'

interface Sizes {
  readonly tasks: number
  readonly chain: number
  readonly jobs: readonly [few: number, many: number]
  readonly paused: number
}

const full: Sizes = { tasks: 100_000, chain: 1000, jobs: [100, 10_000], paused: 1_000_000 }
const small: Sizes = { tasks: 3_000, chain: 30, jobs: [20, 200], paused: 5_000 }

/** What jobs cost: large ones, long ones, many of them, and the pause of a very large one. */
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

/** One job with very many tasks, beside as many that stand alone. */
async function large(store: OwnStore, { tasks }: Sizes): Promise<string[][]> {
  const { engine } = store
  await store.fill(tasks)
  await store.tidy()
  const alone = await store.drain(tasks)
  const payloads = Array.from({ length: tasks }, (_, index) => payload(index))
  const began = performance.now()
  const { id } = await engine.submit({ name: 'large', stages: [{ name: 'all', task: 'noop', payloads }] })
  const submitted = (performance.now() - began) / 1000
  await store.tidy()
  const before = await medianOf(20, () => engine.job(id))
  const draining = store.drain(tasks)
  const during = await medianOf(20, () => engine.job(id))
  const inStage = await draining
  await mustBe(store, id, 'succeeded')
  return [
    [`submit a job of ${whole(tasks)} tasks`, `${submitted.toFixed(2)} s`, '< 5 s for 100,000'],
    ['read its progress, median', milliseconds(before), '< 50 ms'],
    ['read its progress while it is drained, median', milliseconds(during), ''],
    ['drain its stage with two workers', `${whole(inStage)} tasks/s`, ''],
    ['drain as many that stand alone', `${whole(alone)} tasks/s (stage/alone ${(inStage / alone).toFixed(2)}x)`, ''],
  ]
}

/** Stages of one task each, one after the other. */
async function chain(store: OwnStore, { chain: length }: Sizes): Promise<string[][]> {
  const rows: string[][] = []
  for (const stages of [Math.ceil(length / 10), length]) {
    const names = Array.from({ length: stages }, (_, index) => ({ name: `stage-${index}`, task: 'noop' }))
    const { id } = await store.engine.submit({ name: 'chain', stages: names })
    const perSecond = await store.drain(stages)
    await mustBe(store, id, 'succeeded')
    rows.push([`a chain of ${whole(stages)} stages of one task`, `${milliseconds(1000 / perSecond)} per stage`, ''])
  }
  return rows
}

const submittersAtOnce = 4

/** Small jobs of three stages: what a task costs must not depend on how many jobs there are. */
async function many(store: OwnStore, { jobs }: Sizes): Promise<string[][]> {
  const rows: string[][] = []
  const costs: number[] = []
  for (const count of jobs) {
    let left = count
    const submit = async () => {
      while (left-- > 0) {
        const stages = ['a', 'b', 'c'].map(name => ({ name, task: 'noop', payload: payload(left) }))
        await store.engine.submit({ name: 'small', stages })
      }
    }
    const began = performance.now()
    await Promise.all(Array.from({ length: submittersAtOnce }, submit))
    const perSecond = (1000 * count) / (performance.now() - began)
    await store.tidy()
    const tasksPerSecond = await store.drain(count * 3)
    costs.push(1000 / tasksPerSecond)
    rows.push(
      [`submit ${whole(count)} jobs of three stages of one task`, `${whole(perSecond)} jobs/s`, ''],
      ['… and drain them', `${whole(tasksPerSecond)} tasks/s`, ''],
    )
  }
  const ratio = costs[1]! / costs[0]!
  return [...rows, [`a task of ${whole(jobs[1])} jobs vs of ${whole(jobs[0])}`, `${ratio.toFixed(2)}x`, 'flat']]
}

const tasksPerCall = 10_000

/** The pause of a job with very many queued tasks, and what claims from another queue feel of it. */
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
