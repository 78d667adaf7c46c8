/** A worker of the Job State Machine, as in its document: claim, start, heartbeat, end. It repeats unanswered requests. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Job, type JsmClient, Refused } from './jsm-client.ts'

/** The outcome of an attempt. */
export type End = { readonly result: unknown } | { readonly error_class: string; readonly message: string }

export interface Worked {
  /** Leases under which the handler ran, as `id epoch`. */
  readonly leases: string[]
  /** Jobs that were lost to another worker. */
  readonly lost: string[]
}

const patienceMs = 60_000

/** Retries while the server is unreachable or busy, and throws refusals. */
export async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  const until = performance.now() + patienceMs
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      const passes = error instanceof Refused ? error.refusal.error_class === 'TransientError' : true
      if (!passes || performance.now() > until) throw error
      await sleep(20)
    }
  }
}

/** Works until no job is left. */
export async function work(
  jsm: JsmClient,
  worker: string,
  types: readonly string[],
  handle: (job: Job) => End,
  isOver: () => boolean,
): Promise<Worked> {
  const worked: Worked = { leases: [], lost: [] }
  while (!isOver()) {
    const ask = { worker, types, lease_sec: 120, wait_sec: 0.1, idempotency_key: randomUUID() }
    const job = await patiently(() => jsm.claim(ask))
    if (job === null) continue
    try {
      await workOne(jsm, worker, job, handle, worked)
    } catch (error) {
      if (!(error instanceof Refused) || error.refusal.error_class !== 'LeaseConflictError') throw error
      worked.lost.push(job.id)
    }
  }
  return worked
}

async function workOne(jsm: JsmClient, worker: string, job: Job, handle: (job: Job) => End, worked: Worked) {
  const { id, lease } = job
  const mine = { worker, epoch: lease!.epoch }
  await patiently(() => jsm.say(id, 'start', mine))
  worked.leases.push(`${id} ${mine.epoch}`)
  await patiently(() => jsm.say(id, 'heartbeat', { ...mine, progress: 0.5 }))
  const end = handle(job)
  await patiently(() =>
    'result' in end ? jsm.say(id, 'succeed', { ...mine, ...end }) : jsm.say(id, 'fail', { ...mine, ...end }),
  )
}
