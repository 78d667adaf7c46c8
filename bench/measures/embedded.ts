import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pawl } from '../../dist/index.js'
import type { Figure, Measure } from '../contender.ts'
import { openLightClient } from '../light-client.ts'
import { table, whole } from '../markdown.ts'
import { type Cost, good, ownRoutes, workOneAtATime } from '../one-at-a-time.ts'
import { closeAfterMeasure } from '../own-store.ts'
import { startServerProcess } from '../processes.ts'
import { median } from '../statistics.ts'
import { drain, fill, secondsOf, smallJobRates } from '../work.ts'

/** The embedded store on disk: in this process, and behind a server. */
export const measure: Measure = {
  name: 'embedded',
  async run({ quick }) {
    const folder = await mkdtemp(join(tmpdir(), 'pawl-bench-embedded-'))
    try {
      const inProcess = await measureInProcess(join(folder, 'own'), quick)
      const served = await measureServed(join(folder, 'served'), quick)
      const text = (name: string) => Math.round([...inProcess, ...served].find(each => each.name === name)!.value)
      const rows = [
        ['enqueue', `${whole(text('embedded.enqueue'))} tasks/s`],
        ['drain', `${whole(text('embedded.drain'))} tasks/s`],
        ['submit jobs of three stages of one task', `${whole(text('embedded.submitted'))} jobs/s`],
        ['work these jobs off', `${whole(text('embedded.worked-off'))} jobs/s`],
        ['such jobs end to end', `${whole(text('embedded.end-to-end'))} jobs/s`],
        ['one at a time over HTTP, 8 claimers', `${whole(text('embedded.one-at-a-time'))} tasks/s`],
        ['… CPU of the server per task', `${served.at(-1)!.value.toFixed(2)} ms`],
      ]
      const note =
        'On disk, with one connection. End to end: from the first submit to the last end, with workers that run meanwhile.'
      return {
        title: 'The embedded store',
        markdown: `${table(['', ''], rows)}\n\n${note}\n`,
        figures: [...inProcess, ...served],
      }
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  },
}

async function measureInProcess(folder: string, quick: boolean): Promise<Figure[]> {
  const [tasks, jobs] = quick ? [3000, 30] : [20_000, 500]
  const engine = await pawl({ folder })
  const close = closeAfterMeasure(() => engine.close())
  await fill(engine, 1000)
  await drain(engine, 1000)
  const enqueue: number[] = []
  const drained: number[] = []
  for (let round = 0; round < 3; round++) {
    enqueue.push(tasks / (await secondsOf(() => fill(engine, tasks))))
    drained.push(await drain(engine, tasks))
  }
  const { submitted, workedOff, endToEnd } = await smallJobRates(engine, jobs)
  await close()
  return [
    { name: 'embedded.enqueue', value: median(enqueue), unit: 'tasks/s', better: 'higher' },
    { name: 'embedded.drain', value: median(drained), unit: 'tasks/s', better: 'higher' },
    { name: 'embedded.submitted', value: submitted, unit: 'jobs/s', better: 'higher' },
    { name: 'embedded.worked-off', value: workedOff, unit: 'jobs/s', better: 'higher' },
    { name: 'embedded.end-to-end', value: endToEnd, unit: 'jobs/s', better: 'higher' },
  ]
}

async function measureServed(folder: string, quick: boolean): Promise<Figure[]> {
  const [count, rounds] = quick ? [100, 1] : [1000, 3]
  await using server = await startServerProcess(folder)
  const client = await openLightClient(server.url)
  const costs: Cost[] = []
  // The first round warms up.
  for (let round = 0; round <= rounds; round++) {
    const tasks = Array.from({ length: count }, (_, n) => ({ type: 'noop', payload: { n } }))
    good(await client.ask('POST', '/v1/tasks', tasks))
    const cost = await workOneAtATime({ ...server, postgres: 0 }, { claimers: 8, count, doOne: ownRoutes('noop') })
    if (round > 0) costs.push(cost)
  }
  client.close()
  return [
    {
      name: 'embedded.one-at-a-time',
      value: median(costs.map(({ rate }) => rate)),
      unit: 'tasks/s',
      better: 'higher',
    },
    {
      name: 'embedded.one-at-a-time.cpu',
      value: median(costs.map(({ serverMs }) => serverMs)),
      unit: 'ms',
      better: 'lower',
    },
  ]
}
