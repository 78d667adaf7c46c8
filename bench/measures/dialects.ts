import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import type { Measure } from '../contender.ts'
import { openOwnStore } from '../own-store.ts'
import { table, whole } from '../report.ts'
import { median } from '../statistics.ts'

const claimers = 8

/** Tasks of a stage, one at a time by eight who ask in turn: through Jobnik's routes and through our own. */
export const measure: Measure = {
  name: 'dialects',
  async run({ cluster, quick }) {
    const [count, rounds] = quick ? [300, 1] : [4000, 5]
    const store = await openOwnStore(cluster, 'dialects')
    const program = join(import.meta.dirname, '../programs/server.ts')
    const child = spawn(process.execPath, [program, store.url], { stdio: ['ignore', 'pipe', 'inherit'] })
    const agent = new Agent({ keepAlive: true, maxSockets: claimers })
    try {
      const [said] = await once(child.stdout, 'data')
      const ask = asker(String(said).trim(), agent)
      const ways = [
        { name: 'jobnik: dequeue, then COMPLETED', prepare: throughJobnik },
        { name: '/v1: claims (that start), then succeed', prepare: throughOurs },
      ] as const
      const rates = ways.map((): number[] => [])
      // The first round warms up.
      for (let round = 0; round <= rounds; round++) {
        for (const [index, { prepare }] of ways.entries()) {
          const work = await prepare(ask, count, `round-${round}-${index}`)
          await store.tidy()
          const rate = await drain(work, count)
          if (round > 0 || rounds === 1) rates[index]!.push(rate)
        }
      }
      const [theirs, ours] = rates.map(median) as [number, number]
      const rows = ways.map(({ name }, index) => [name, whole(median(rates[index]!))])
      return {
        title: 'One at a time, through a dialect and through our own routes',
        markdown: `${table(['', 'tasks/s'], rows)}

The dialect runs at **${(theirs / ours).toFixed(2)}x**: ${claimers} claimers, ${whole(count)} tasks of one stage, medians of ${rounds} rounds.
`,
      }
    } finally {
      agent.destroy()
      child.kill('SIGTERM')
      await store.close()
    }
  },
}

type Ask = (method: string, path: string, body?: unknown) => Promise<{ status: number; body: unknown }>

function asker(url: string, agent: Agent): Ask {
  return async (method, path, said) => {
    const text = said === undefined ? undefined : JSON.stringify(said)
    const headers =
      text === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
    const asked = request(`${url}${path}`, { method, agent, headers })
    asked.end(text)
    const [answer] = await once(asked, 'response')
    let body = ''
    for await (const chunk of answer) body += chunk
    if (answer.statusCode >= 500) throw new Error(`${method} ${path}: ${answer.statusCode} ${body}`)
    return { status: answer.statusCode, body: body === '' ? undefined : JSON.parse(body) }
  }
}

/** Does one task; false: there was none. */
type Work = (claimer: number) => Promise<boolean>

async function throughJobnik(ask: Ask, count: number, type: string): Promise<Work> {
  const root = '/dialects/jobnik/v1'
  const { body: job } = await ask('POST', `${root}/jobs`, { name: 'bench', data: {} })
  const { body: stage } = await ask('POST', `${root}/jobs/${idOf(job)}/stage`, { type, data: {}, userMetadata: {} })
  const task = { data: { n: 1 }, userMetadata: {}, maxAttempts: 1 }
  for (let left = count; left > 0; left -= 1000) {
    await ask('POST', `${root}/stages/${idOf(stage)}/tasks`, Array(Math.min(left, 1000)).fill(task))
  }
  return async () => {
    const { status, body } = await ask('PATCH', `${root}/stages/${type}/tasks/dequeue`)
    if (status === 404) return false
    const report = await ask('PUT', `${root}/tasks/${idOf(body)}/status`, { status: 'COMPLETED' })
    return isGood(report.status)
  }
}

async function throughOurs(ask: Ask, count: number, type: string): Promise<Work> {
  const payloads = Array(count).fill({ n: 1 })
  await ask('POST', '/v1/jobs', {
    name: 'bench',
    stages: [{ name: 'only', task: type, payloads, heartbeatSeconds: null }],
  })
  return async claimer => {
    const { body } = await ask('POST', '/v1/claims', { worker: `w${claimer}`, queues: [type], start: true })
    const [claimed] = body as { id: string; epoch: number }[]
    if (claimed === undefined) return false
    const report = await ask('POST', `/v1/tasks/${claimed.id}/succeed`, { epoch: claimed.epoch })
    return isGood(report.status)
  }
}

const idOf = (body: unknown) => (body as { id: string }).id

function isGood(status: number): true {
  if (status !== 200) throw new Error(`a report was answered with ${status}`)
  return true
}

/** Tasks per second. */
async function drain(work: Work, count: number): Promise<number> {
  let done = 0
  const began = performance.now()
  const claimer = async (_: unknown, index: number) => {
    while (await work(index)) done += 1
  }
  await Promise.all(Array.from({ length: claimers }, claimer))
  if (done !== count) throw new Error(`${done} of ${count} tasks were done`)
  return count / ((performance.now() - began) / 1000)
}
