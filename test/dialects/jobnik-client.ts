/**
 * Jobnik's producer, consumer and worker, written from its document: plain `fetch`, a JSON body, no key. A request is
 * retried if the server is unreachable or answers 502, 503 or 504.
 */
import { setTimeout as sleep } from 'node:timers/promises'

export interface JobnikTask {
  readonly id: string
  readonly data: Record<string, unknown>
  readonly stageId: string
  readonly status: string
  readonly attempts: number
  readonly maxAttempts: number
  readonly traceparent: string
  readonly userMetadata: Record<string, unknown>
  readonly creationTime: string
  readonly updateTime: string
  readonly startTime?: string
  readonly endTime?: string
}

export interface JobnikStage {
  readonly id: string
  readonly type: string
  readonly data: Record<string, unknown>
  readonly summary: Record<'pending' | 'inProgress' | 'completed' | 'failed' | 'created' | 'retried' | 'total', number>
  readonly jobId: string
  readonly order: number
  readonly traceparent: string
  readonly userMetadata: Record<string, unknown>
  readonly percentage: number
  readonly status: string
  readonly tasks?: readonly JobnikTask[]
}

export interface JobnikJob {
  readonly id: string
  readonly name: string
  readonly data: Record<string, unknown>
  readonly userMetadata: Record<string, unknown>
  readonly traceparent: string
  readonly tracestate?: string
  readonly status: string
  readonly percentage: number
  readonly creationTime: string
  readonly updateTime: string
  readonly priority: string
  readonly stages?: readonly JobnikStage[]
}

export interface Answer<Body> {
  readonly status: number
  readonly headers: Headers
  readonly body: Body
}

/** The body of an error, and of a successful change. */
export interface Message {
  readonly message?: string
  readonly code: string
}

/** Thrown if a request that must succeed is refused. */
class Refusal extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, what: string) {
    super(`${what} was answered ${status} ${code}`)
    this.status = status
    this.code = code
  }
}

export type Jobnik = ReturnType<typeof jobnikClient>

/** `url`: the address of the dialect. */
export function jobnikClient(url: string, { patienceSeconds = 0 } = {}) {
  const send = async (method: string, path: string, body?: unknown): Promise<Response> => {
    const until = performance.now() + patienceSeconds * 1000
    for (let pauseMs = 20; ; pauseMs = Math.min(pauseMs * 2, 500)) {
      try {
        const response = await fetch(`${url}${path}`, {
          method,
          // Jobnik's client sends this header even without a body.
          headers: { 'content-type': 'application/json' },
          ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
        })
        if (![502, 503, 504].includes(response.status) || performance.now() > until) return response
      } catch (error) {
        if (performance.now() > until) throw error
      }
      await sleep(pauseMs)
    }
  }
  const ask = async <Body = Message>(method: string, path: string, body?: unknown): Promise<Answer<Body>> => {
    const response = await send(method, path, body)
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) }
  }
  const want = async <Body>(method: string, path: string, body?: unknown): Promise<Body> => {
    const answer = await ask<Body>(method, path, body)
    if (answer.status < 300) return answer.body
    throw new Refusal(answer.status, (answer.body as Message).code, `${method} ${path}`)
  }
  return {
    url,
    ask,
    createJob: (job: object = {}) => want<JobnikJob>('POST', '/v1/jobs', { name: 'images', data: {}, ...job }),
    createStage: (jobId: string, type: string, stage: object = {}) =>
      want<JobnikStage>('POST', `/v1/jobs/${jobId}/stage`, { type, data: {}, ...stage }),
    createTasks: (stageId: string, tasks: readonly object[]) =>
      want<JobnikTask[]>('POST', `/v1/stages/${stageId}/tasks`, tasks),
    job: (id: string) => want<JobnikJob>('GET', `/v1/jobs/${id}?should_return_stages=true`),
    stage: (id: string) => want<JobnikStage>('GET', `/v1/stages/${id}`),
    task: (id: string) => want<JobnikTask>('GET', `/v1/tasks/${id}`),
    setJob: (id: string, status: string) => ask('PUT', `/v1/jobs/${id}/status`, { status }),
    setStage: (id: string, status: string) => ask('PUT', `/v1/stages/${id}/status`, { status }),
    /** Null if there is no task. */
    async dequeue(type: string): Promise<JobnikTask | null> {
      const { status, body } = await ask<JobnikTask>('PATCH', `/v1/stages/${encodeURIComponent(type)}/tasks/dequeue`)
      if (status === 404) return null
      if (status === 200) return body
      throw new Refusal(status, (body as unknown as Message).code, `dequeue ${type}`)
    },
    report: (id: string, status: string) => ask<JobnikTask & Message>('PUT', `/v1/tasks/${id}/status`, { status }),
  }
}

export interface JobnikWorker {
  /** The tasks that the worker holds. */
  readonly running: number
  /** The number of empty dequeues. The worker sends one request at a time. */
  readonly emptyPolls: number
  stop(): Promise<void>
}

/** Dequeues while it has free capacity, runs the handler, and reports COMPLETED if it returns, FAILED if it throws. */
export function startJobnikWorker(
  jobnik: Jobnik,
  type: string,
  handler: (task: JobnikTask) => Promise<void> | void,
  { concurrency = 1, pullingMs = 20 } = {},
): JobnikWorker {
  const running = new Map<string, Promise<void>>()
  let isStopped = false
  let emptyPolls = 0
  const run = async (task: JobnikTask) => {
    const isDone = await Promise.resolve(task)
      .then(handler)
      .then(
        () => true,
        () => false,
      )
    // If the answer to a report was lost, its repetition is refused. The report has counted.
    await jobnik.report(task.id, isDone ? 'COMPLETED' : 'FAILED')
  }
  const pull = async () => {
    while (!isStopped) {
      while (running.size >= concurrency) await Promise.race(running.values())
      const task = await jobnik.dequeue(type)
      if (task === null) {
        emptyPolls += 1
        await sleep(pullingMs)
      } else {
        const ended = run(task).finally(() => running.delete(task.id))
        running.set(task.id, ended)
      }
    }
    await Promise.allSettled(running.values())
  }
  const pulling = pull()
  return {
    get running() {
      return running.size
    },
    get emptyPolls() {
      return emptyPolls
    },
    async stop() {
      isStopped = true
      await pulling
    },
  }
}
