/**
 * A client of the Job State Machine, written from its document alone: it knows its routes, states and errors.
 */

export type State = 'queued' | 'assigned' | 'running' | 'succeeded' | 'failed' | 'cancelled' | 'dead_lettered'

export interface Job {
  readonly id: string
  readonly type: string
  readonly state: State
  readonly payload: unknown
  readonly attempts: number
  readonly correlation_id: string | null
  readonly trace_id: string | null
  readonly lease: {
    readonly owner: string
    readonly epoch: number
    readonly expires_at: string
    readonly lease_sec: number
    readonly heartbeat_sec: number
  } | null
  readonly cancel_requested_at: string | null
  readonly checkpoint: unknown
  readonly result: unknown
  readonly last_error: { readonly error_class: string | null; readonly message: string } | null
}

export interface Event {
  readonly id: string
  readonly job_id: string
  readonly type: string
  readonly ts: string
  readonly actor: string
  readonly correlation_id: string | null
  readonly cause: string | null
  readonly payload: { readonly from: State | null; readonly to: State; readonly epoch: number } & Record<
    string,
    unknown
  >
  readonly version: number
}

export interface DeadLetter {
  readonly job_id: string
  readonly reason_code: string
  readonly stage: string | null
  readonly last_error: { readonly error_class: string | null; readonly message: string }
  readonly attempts: number
  readonly last_owner: string | null
  readonly last_lease_expires_at: string | null
  readonly correlation_id: string | null
}

export interface Refusal {
  readonly error_class: string
  readonly code: string
  readonly message: string
  readonly state: State | null
  readonly allowed: readonly string[] | null
}

export class Refused extends Error {
  readonly status: number
  readonly refusal: Refusal
  constructor(status: number, refusal: Refusal) {
    super(`${status} ${refusal.code}: ${refusal.message}`)
    this.status = status
    this.refusal = refusal
  }
}

export type Request = 'start' | 'heartbeat' | 'succeed' | 'fail' | 'cancel' | 'dead_letter'

export type JsmClient = ReturnType<typeof jsmClient>

/** `server`: the current address, which may change after a restart. */
export function jsmClient(server: () => string, headers: Record<string, string> = {}) {
  async function ask<Answer>(method: 'GET' | 'POST', path: string, body?: object): Promise<Answer> {
    const response = await fetch(`${server()}/dialects/jsm${path}`, {
      method,
      headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const answer = await response.json()
    if (!response.ok) throw new Refused(response.status, answer as Refusal)
    return answer as Answer
  }
  return {
    ask,
    enqueue: (body: object) => ask<Job>('POST', '/jobs', body),
    claim: (body: object) => ask<Job | null>('POST', '/jobs/claim', body),
    /** Sends one of the requests for a job. */
    say: (id: string, request: Request, body: object) => ask<Job>('POST', `/jobs/${id}/${request}`, body),
    job: (id: string) => ask<Job>('GET', `/jobs/${id}`),
    async events(id: string): Promise<Event[]> {
      const all: Event[] = []
      for (let cursor: string | null = ''; cursor !== null; ) {
        const page: { items: Event[]; next: string | null } = await ask(
          'GET',
          `/jobs/${id}/events${cursor === '' ? '' : `?cursor=${cursor}`}`,
        )
        all.push(...page.items)
        cursor = page.next
      }
      return all
    },
    async deadLetters(query = ''): Promise<DeadLetter[]> {
      return (await ask<{ items: DeadLetter[] }>('GET', `/dlq${query}`)).items
    },
    retry: (id: string, body: object = {}) => ask<Job>('POST', `/dlq/${id}/retry`, body),
    metrics: () => ask<Record<string, unknown>>('GET', '/metrics'),
  }
}

/** The body of the refusal. The test fails if the request succeeds. */
export async function refusalOf(asked: Promise<unknown>): Promise<Refusal & { readonly status: number }> {
  const thrown: unknown = await asked.then(
    granted => new Error(`it was granted: ${JSON.stringify(granted)}`),
    error => error,
  )
  if (!(thrown instanceof Refused)) throw thrown
  return { status: thrown.status, ...thrown.refusal }
}

/** The transitions of a job, as `from → to`, without heartbeats. */
export function transitionsIn(events: readonly Event[]): string[] {
  const isVerbose = ({ type }: Event) => type === 'job_heartbeat' || type === 'job_lease_renewed'
  return events.filter(event => !isVerbose(event)).map(({ payload: { from, to } }) => `${from ?? '*'} → ${to}`)
}
