import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import pg from 'pg'
import { connect, defineTask, startWorker } from '../../dist/index.js'
import { type Contender, type ContenderEnv, enqueueInBatches, latencyProbe } from '../contender.ts'
import { end, forkProgram, startServerProcess } from '../processes.ts'

const workers = 4

/** Pawl over HTTP: one server process and four worker processes, as on separate machines. */
export async function openContender({ databaseUrl }: ContenderEnv): Promise<Contender> {
  const server = await startServerProcess(databaseUrl)
  const client = connect({ server: server.url })
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 })
  pool.on('error', () => {})
  const fleet = Array.from({ length: workers }, () => forkProgram('http-worker.ts', [server.url]))
  await Promise.all(fleet.map(child => once(child, 'message')))
  const left = async () => {
    const { rows } = await pool.query('select count(*)::int as left from pawl.task where ended_at is null')
    return rows[0].left as number
  }
  return {
    settings: `one server process (4 connections), ${workers} worker processes over HTTP, each 200 handlers and 800 ahead`,
    enqueue: count =>
      enqueueInBatches({ count, batch: 5000, atOnce: 2 }, payloads =>
        client.enqueueMany(payloads.map(payload => ({ type: 'noop', payload }))),
      ),
    drain: count => drained(fleet, count),
    async rest() {
      const resting = fleet.map(
        child => new Promise<void>(resolve => child.on('message', (word: Word) => 'rested' in word && resolve())),
      )
      for (const child of fleet) child.send('rest')
      await Promise.all(resting)
      for (const child of fleet) child.removeAllListeners('message')
    },
    async latency(samples) {
      const probe = latencyProbe()
      await using _worker = startWorker(client, [defineTask({ type: 'probe', handler: probe.handler })])
      return await probe.sample(samples, () => client.enqueue('probe', null))
    },
    left,
    async clear() {
      const truncate = () => pool.query('truncate pawl.task, pawl.due, pawl.claim, pawl.change, pawl.trouble')
      // The server's babysitter uses these tables too, in an order of its own.
      for (let tries = 0; tries < 5; tries++) {
        try {
          await truncate()
          return
        } catch (error) {
          if ((error as { code?: string }).code !== '40P01') throw error
        }
      }
      await truncate()
    },
    async close() {
      await Promise.all(fleet.map(child => end(child)))
      await server.stop()
      await pool.end()
    },
  }
}

type Word = { ran: number; inHand: number } | { rested: true }

/** Resolves when every handler has run and every report has been answered. */
function drained(fleet: readonly ChildProcess[], count: number): Promise<void> {
  const ran = fleet.map(() => 0)
  const inHand = fleet.map(() => 1)
  return new Promise(resolve => {
    for (const [index, child] of fleet.entries()) {
      child.on('message', (word: Word) => {
        if (!('ran' in word)) return
        ran[index] = word.ran
        inHand[index] = word.inHand
        const sum = (numbers: number[]) => numbers.reduce((all, one) => all + one, 0)
        if (sum(ran) >= count && sum(inHand) === 0) resolve()
      })
      child.send('go')
    }
  })
}
