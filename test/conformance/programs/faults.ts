/** Faults of workers. Each changes what the worker sends or receives. */
import type { ClaimedTask, SyncAnswer, SyncPort, SyncRequest } from '../../../src/protocol/tasks/sync.ts'

type Sync = (request: SyncRequest) => Promise<SyncAnswer>

export interface Planted {
  /** Sends one sync with the fault. `send` sends it correctly. */
  sync?(request: SyncRequest, send: Sync): Promise<SyncAnswer>
  drainSeconds?: number
  /** How long SIGTERM is ignored. */
  deafMs?: number
}

const nothing: SyncAnswer = { waitedMs: 0, claimed: [], refused: [], cancel: [] }

const answersWith = (change: (answer: SyncAnswer) => Partial<SyncAnswer>): Planted => ({
  async sync(request, send) {
    const answer = await send(request)
    return { ...answer, ...change(answer) }
  },
})

const altered = (change: (request: SyncRequest) => Partial<SyncRequest>): Planted => ({
  sync: (request, send) => send({ ...request, ...change(request) }),
})

const claimsAs = (change: Partial<ClaimedTask>) =>
  answersWith(({ claimed }) => ({ claimed: claimed.map(task => ({ ...task, ...change })) }))

const settles = (request: SyncRequest) => (request.settled?.length ?? 0) > 0

export const faults: Readonly<Record<string, Planted>> = {
  'ignores-cancel': answersWith(() => ({ cancel: [] })),
  'keeps-a-lost-lease': answersWith(() => ({ refused: [] })),
  'trusts-its-lease-for-ever': claimsAs({ leaseSeconds: 3600 }),
  'never-beats': {
    sync: async (request, send) => (request.beats === undefined ? send(request) : nothing),
  },
  'reports-twice': {
    async sync(request, send) {
      const answer = await send(request)
      const otherwise = request.settled?.map(({ id, epoch }) => ({ id, epoch, outcome: 'cancelled' as const }))
      if (settles(request)) await send({ worker: request.worker, settled: otherwise! })
      return answer
    },
  },
  'keeps-reporting': {
    async sync(request, send) {
      const answer = await send(request)
      return settles(request) ? send(request) : answer
    },
  },
  'forgets-a-lost-report': {
    sync: (request, send) => (settles(request) ? send(request).catch(() => nothing) : send(request)),
  },
  'does-it-again-after-a-lost-report': doesItAgain(),
  'claims-after-sigterm': { deafMs: 6000 },
  'drops-what-it-holds': { deafMs: -1 },
  'drains-for-ever': { drainSeconds: 600 },
  'runs-careful-tasks-at-once': claimsAs({ careful: false }),
  'ignores-a-refused-start': {
    async sync(request, send) {
      const answer = await send(request)
      return request.started !== undefined && request.beats === undefined ? { ...answer, refused: [] } : answer
    },
  },
  'dies-of-an-unknown-type': answersWith(({ claimed }) => {
    if (claimed.some(({ type }) => type !== 'conformance')) process.exit(1)
    return {}
  }),
  'dies-with-the-server': {
    sync: (request, send) => send(request).catch(() => process.exit(1)),
  },
  'loses-what-errors-say': altered(({ settled }) =>
    settled === undefined
      ? {}
      : { settled: settled.map(({ error, ...item }) => (error ? { ...item, error: { message: 'failed' } } : item)) },
  ),
  'loses-the-output': altered(({ settled }) =>
    settled === undefined ? {} : { settled: settled.map(({ output: _, ...item }) => item) },
  ),
  'has-no-session': {
    sync: ({ session: _, syncId: __, ...request }, send) => send(request),
  },
  'asks-all-the-time': altered(() => ({ waitSeconds: 0 })),
  'hides-starts': {
    sync: ({ started: _, ...request }, send) => send(request),
  },
}

/** Runs tasks again whose report failed. */
function doesItAgain(): Planted {
  const known = new Map<string, ClaimedTask>()
  const again: ClaimedTask[] = []
  return {
    async sync(request, send) {
      if (settles(request)) {
        return send(request).catch(() => {
          for (const { id } of request.settled!) again.push(known.get(id)!)
          return nothing
        })
      }
      const answer = await send(request.claim ? { ...request, waitSeconds: 1 } : request)
      for (const task of answer.claimed) known.set(task.id, task)
      return { ...answer, claimed: [...answer.claimed, ...(request.claim ? again.splice(0) : [])] }
    },
  }
}

/** The connection to the engine of a worker with this fault. */
export function withFault(port: SyncPort, { sync }: Planted): SyncPort {
  return {
    putTaskType: (type, settings) => port.putTaskType(type, settings),
    sync: (request, signal) => {
      const send = (changed: SyncRequest) => port.sync(changed, signal)
      return sync === undefined ? send(request) : sync(request, send)
    },
  }
}
