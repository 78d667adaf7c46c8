import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Figure, Measure } from '../contender.ts'
import { type Ask, openLightClient } from '../light-client.ts'
import { table, whole } from '../markdown.ts'
import { type Cost, type DoOne, good, ownRoutes, workOneAtATime } from '../one-at-a-time.ts'
import { openOwnStore } from '../own-store.ts'
import { startServerProcess } from '../processes.ts'
import { median } from '../statistics.ts'

interface Way {
  key: string
  name: string
  claimers: number
  /** Prepares a round. Its files are removed when `dispose` is called. */
  prepare(ask: Ask, count: number, round: string): Promise<{ doOne: DoOne; dispose(): Promise<void> }>
}

/** Tasks of a stage, one at a time: through the routes of two dialects, and through our own. */
export const measure: Measure = {
  name: 'dialects',
  async run({ cluster, quick }) {
    const [count, rounds] = quick ? [300, 1] : [1500, 3]
    const store = await openOwnStore(cluster, 'dialects')
    await using server = await startServerProcess(store.url)
    const served = { ...server, postgres: cluster.pid() }
    const client = await openLightClient(server.url)
    const ways: Way[] = [own, jobnik, falconeri]
    const costs = ways.map((): Cost[] => [])
    // The first round warms up.
    for (let round = 0; round <= rounds; round++) {
      for (const [index, { claimers, prepare }] of ways.entries()) {
        const { doOne, dispose } = await prepare(client.ask, count, `round-${round}-${index}`)
        await store.tidy()
        try {
          const cost = await workOneAtATime(served, { claimers, count, doOne })
          if (round > 0) costs[index]!.push(cost)
        } finally {
          await dispose()
        }
      }
    }
    client.close()
    await server.stop()
    await store.close()
    const rows: string[][] = []
    const figures: Figure[] = []
    for (const [index, { key, name, claimers }] of ways.entries()) {
      const of = (part: keyof Cost) => median(costs[index]!.map(cost => cost[part]))
      rows.push([
        name,
        whole(claimers),
        whole(of('rate')),
        `${of('serverMs').toFixed(2)} ms`,
        `${of('postgresMs').toFixed(2)} ms`,
      ])
      figures.push(
        { name: `dialects.${key}.rate`, value: of('rate'), unit: 'tasks/s', better: 'higher' },
        { name: `dialects.${key}.server`, value: of('serverMs'), unit: 'ms', better: 'lower' },
        { name: `dialects.${key}.postgres`, value: of('postgresMs'), unit: 'ms', better: 'lower' },
      )
    }
    const markdown = `${table(['', 'claimers', 'tasks/s', 'CPU per task, server', 'PostgreSQL'], rows)}

${whole(count)} tasks of one stage, medians of ${rounds} rounds. A datum of Falconeri takes the five requests of its worker: get the
job, reserve, register an output file, report it as uploaded, report the datum. The file is really written.
`
    return { title: 'One at a time, through dialects and through our own routes', markdown, figures }
  },
}

const nothing = async () => {}

const own: Way = {
  key: 'own',
  name: '/v1: claims (that start), then succeed',
  claimers: 8,
  async prepare(ask, count, type) {
    const payloads = Array(count).fill({ n: 1 })
    const stage = { name: 'only', task: type, payloads, heartbeatSeconds: null }
    good(await ask('POST', '/v1/jobs', { name: 'bench', stages: [stage] }))
    return { doOne: ownRoutes(type), dispose: nothing }
  },
}

const jobnik: Way = {
  key: 'jobnik',
  name: 'Jobnik: dequeue, then COMPLETED',
  claimers: 8,
  async prepare(ask, count, type) {
    const root = '/dialects/jobnik/v1'
    const job = good(await ask('POST', `${root}/jobs`, { name: 'bench', data: {} }))
    const newStage = { type, data: {}, userMetadata: {} }
    const stage = good(await ask('POST', `${root}/jobs/${idOf(job)}/stage`, newStage))
    const task = { data: { n: 1 }, userMetadata: {}, maxAttempts: 1 }
    for (let left = count; left > 0; left -= 1000) {
      good(await ask('POST', `${root}/stages/${idOf(stage)}/tasks`, Array(Math.min(left, 1000)).fill(task)))
    }
    const doOne: DoOne = async send => {
      const { status, body } = await send('PATCH', `${root}/stages/${type}/tasks/dequeue`)
      if (status === 404) return false
      good(await send('PUT', `${root}/tasks/${idOf(body)}/status`, { status: 'COMPLETED' }))
      return true
    }
    return { doOne, dispose: nothing }
  },
}

const falconeri: Way = {
  key: 'falconeri',
  name: 'Falconeri: a datum with one output file',
  claimers: 4,
  async prepare(ask, count, round) {
    const root = '/dialects/falconeri'
    const [inbox, outbox] = await Promise.all(['in', 'out'].map(name => mkdtemp(join(tmpdir(), `pawl-bench-${name}-`))))
    const names = Array.from({ length: count }, (_, index) => `text-${index}.txt`)
    for (const name of names) await writeFile(join(inbox!, name), 'some text\n')
    const pipeline = {
      pipeline: { name: `bench-${round}` },
      transform: { cmd: ['true'], image: 'debian:12', image_pull_policy: null, env: {}, secrets: [] },
      parallelism_spec: { constant: 4 },
      resource_requests: { memory: '64Mi', cpu: 0.1 },
      datum_tries: null,
      job_timeout: null,
      node_selector: {},
      input: { atom: { URI: pathToFileURL(inbox!).href, repo: 'texts', glob: '/*' } },
      egress: { URI: pathToFileURL(outbox!).href },
    }
    const { job } = good(await ask('POST', `${root}/jobs`, { job: pipeline })) as {
      job: { id: string; egress_uri: string }
    }
    const folder = job.egress_uri.endsWith('/') ? job.egress_uri : `${job.egress_uri}/`
    const doOne: DoOne = async (send, claimer) => {
      good(await send('GET', `${root}/jobs/${job.id}`))
      const pod = { pod_name: `pod-${claimer}` }
      const body = good(await send('POST', `${root}/jobs/${job.id}/reserve_next_datum`, { node_name: 'node', ...pod }))
      if (body === null) return false
      const { datum } = body as { datum: { id: string } }
      const uri = `${folder}${datum.id}.txt`
      const path = `${root}/datums/${datum.id}/output_files`
      const files = good(await send('POST', path, { ...pod, output_files: [{ uri }] })) as {
        output_files: { id: string }[]
      }
      await writeFile(fileURLToPath(uri), 'SOME TEXT\n')
      const uploaded = files.output_files.map(({ id }) => ({ id, status: 'done' }))
      good(await send('PATCH', path, { ...pod, output_files: uploaded }))
      const done = { status: 'done', output: '', error_message: null, backtrace: null }
      good(await send('PATCH', `${root}/datums/${datum.id}`, { ...pod, datum: done }))
      return true
    }
    const dispose = async () => {
      await Promise.all([inbox, outbox].map(each => rm(each!, { recursive: true, force: true })))
    }
    return { doOne, dispose }
  },
}

const idOf = (body: unknown) => (body as { id: string }).id
