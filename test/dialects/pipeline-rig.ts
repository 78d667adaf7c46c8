/**
 * A server, and a worker with stub handlers for the stages of the default pipeline. The request decides their
 * behaviour.
 */
import type { TestContext } from 'node:test'
import type { SyncPort } from '../../src/protocol/tasks/sync.ts'
import { defineTask, Skip, startWorker, type Task, type Worker } from '../../src/worker/index.ts'
import { eventually, type Latch, latch } from '../harness/eventually.ts'
import { type Served, type ServedOptions, served } from '../harness/served.ts'
import { type Job, type PipelineClient, pipelineClient, type Started } from './pipeline-client.ts'

export const stageNames = ['ingest', 'classify', 'neutralize', 'brief', 'evaluation', 'optimization'] as const
export type StageName = (typeof stageNames)[number]

/** `hold`: waits until the test continues it or it is cancelled. `persist`: waits, and ignores cancellation. */
export type Doing = 'complete' | 'partial' | 'throw' | 'skip' | 'hold' | 'persist' | 'persist then partial'

interface Called {
  readonly name: StageName
  readonly token: unknown
  readonly payload: unknown
}

export interface Stubs {
  /** The handlers called in all runs, in order. */
  readonly called: readonly Called[]
  /** Starts a worker. */
  work(port: SyncPort): void
  /** Starts a run. Stages that are not named complete. */
  run(api: PipelineClient, config?: Record<string, unknown>, doing?: Partial<Record<StageName, Doing>>): Promise<Run>
}

export interface Run {
  readonly started: Started
  readonly id: string
  /** The stages that started. */
  ran(): string[]
  /** Resolves when a holding stage has started. */
  held(name: StageName): Promise<void>
  letGo(name: StageName): void
  ended(): Promise<Job>
}

/** Registered before the store, so that the worker stops before the store is removed. */
export function stubs(t: TestContext): Stubs {
  const workers: Worker[] = []
  t.after(() => Promise.all(workers.map(worker => worker.stop())))
  const latches = new Map<string, { readonly begun: Latch<void>; readonly go: Latch<void> }>()
  const latchOf = (token: unknown, name: string) => {
    const key = `${token} ${name}`
    const made = latches.get(key) ?? { begun: latch(), go: latch() }
    latches.set(key, made)
    return made
  }
  const called: Called[] = []
  const stub = (name: StageName): Task =>
    defineTask({
      type: name,
      async handler(payload, { signal }) {
        const { config } = payload as { config: { doing?: Record<string, Doing>; token?: string } }
        const doing = config.doing?.[name] ?? 'complete'
        called.push({ name, token: config.token, payload })
        if (doing === 'throw') throw new Error(`${name} broke`)
        if (doing === 'skip') throw new Skip(`nothing to ${name}`)
        if (doing === 'hold' || doing.startsWith('persist')) {
          const { begun, go } = latchOf(config.token, name)
          begun.open()
          const stopped = new Promise<never>((_, stop) => {
            if (doing === 'hold') signal.addEventListener('abort', () => stop(signal.reason))
          })
          await Promise.race([go.opened, stopped])
        }
        if (doing.endsWith('partial')) {
          return { status: 'partial', metrics: { total: 2, failed: 1 }, errors: [`${name} left one out`] }
        }
        return { status: 'completed', metrics: { total: 2, success: 2 }, errors: [] }
      },
    })
  let runs = 0
  return {
    called,
    work(port) {
      workers.push(startWorker(port, stageNames.map(stub), { waitSeconds: 0.2, drainSeconds: 1 }))
    },
    async run(api, config = {}, doing = {}) {
      const token = `run ${++runs}`
      const { status, body } = await api.start({ ...config, doing, token })
      if (status !== 202) throw new Error(`${status} ${JSON.stringify(body)}`)
      return {
        started: body,
        id: body.job_id,
        ran: () => called.filter(one => one.token === token).map(({ name }) => name),
        held: name => latchOf(token, name).begun.opened,
        letGo: name => latchOf(token, name).go.open(),
        ended: () =>
          eventually('the run has ended', async () => {
            const job = await api.job(body.job_id)
            return api.hasEnded(job) && job
          }),
      }
    },
  }
}

export interface Rig extends Served {
  readonly api: PipelineClient
  readonly called: Stubs['called']
  work(): void
  run(config?: Record<string, unknown>, doing?: Partial<Record<StageName, Doing>>): Promise<Run>
}

export async function rig(t: TestContext, options: ServedOptions = {}): Promise<Rig> {
  const { called, work, run } = stubs(t)
  const server = await served(t, options)
  const api = pipelineClient(server.server.url)
  return { ...server, api, called, work: () => work(server.engine), run: (config, doing) => run(api, config, doing) }
}
