/** A client of Marie's REST interface, written from its documents: it knows its routes, its envelope and its fields. */

export interface Job {
  readonly id: string
  readonly name: string
  readonly priority: number
  readonly data: unknown
  readonly state: string
  readonly retry_limit: number
  readonly retry_delay: number
  readonly retry_backoff: boolean
  readonly start_after: string
  readonly expire_in_seconds: number
  readonly keep_until: string | null
  readonly dependencies: readonly string[]
  readonly dag_id: string | null
  readonly soft_sla: string | null
  readonly hard_sla: string | null
  readonly output_metadata: Record<string, unknown> | null
}

export interface Slot {
  readonly name: string
  readonly capacity: number
  readonly used: number
  readonly available: number
  readonly holders: readonly string[]
  readonly notes: string
}

export interface Answer<Result = never> {
  readonly http: number
  readonly status: 'OK' | 'error'
  readonly result: Result
  readonly message: string
  readonly code: string
  readonly parameters: { readonly job_id: string; readonly status: string }
}

/** `base`: the address of its gateway. */
export function marieClient(base: string) {
  async function ask<Result>(method: string, path: string, body?: unknown): Promise<Answer<Result>> {
    const response = await fetch(`${base}${path}`, {
      method,
      ...(body !== undefined && {
        headers: { 'content-type': 'application/json' },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    })
    return { http: response.status, ...((await response.json()) as Omit<Answer<Result>, 'http'>) }
  }
  const client = {
    ask,
    invoke: (body: unknown) => ask<Job>('POST', '/api/v1/invoke', body),
    jobs: (filter = '') => ask<Job[]>('GET', `/api/jobs${filter}`),
    job: (id: string) => ask<Job>('GET', `/api/jobs/${encodeURIComponent(id)}`),
    stop: (id: string) => ask<string>('GET', `/api/jobs/${encodeURIComponent(id)}/stop`),
    resume: (id: string) => ask<string>('POST', `/api/jobs/${encodeURIComponent(id)}/resume`),
    remove: (id: string) => ask<string>('DELETE', `/api/jobs/${encodeURIComponent(id)}`),
    capacity: () => ask<{ slots: Slot[]; totals: Record<string, number> }>('GET', '/api/capacity'),
    stateOf: async (id: string) => (await client.job(id)).result.state,
  }
  return client
}
