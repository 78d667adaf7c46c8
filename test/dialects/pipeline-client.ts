/** A client of the async pipeline, written from its document: it starts, reads, follows and cancels runs. */
export interface StageProgress {
  readonly status: string
  readonly duration_ms: number
  readonly metrics: Record<string, unknown>
  readonly errors: string[]
}

export interface Job {
  readonly id: string
  readonly trace_id: string
  readonly status: string
  readonly current_stage: string | null
  readonly created_at: string
  readonly started_at: string | null
  readonly finished_at: string | null
  readonly stage_progress: Record<string, StageProgress>
  readonly errors: { readonly stage: string | null; readonly message: string }[]
  readonly pipeline_run_summary_id: string | null
}

export interface Started {
  readonly job_id: string
  readonly trace_id: string
  readonly status: string
  readonly status_url: string
  readonly stream_url: string
}

export interface StreamEvent {
  readonly id: string
  readonly event: string
  readonly data: Record<string, unknown>
}

export interface Answered<Body> {
  readonly status: number
  readonly body: Body
}

const terminal = ['completed', 'partial', 'failed', 'cancelled']

/** `at`: the server; `root`: the path of the API there. */
export function pipelineClient(
  at: string,
  { root = '/dialects/pipeline', headers = {} as Record<string, string> } = {},
) {
  async function ask<Body>(method: string, path: string, body?: unknown): Promise<Answered<Body>> {
    const json = body === undefined ? {} : { body: JSON.stringify(body) }
    const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
    const response = await fetch(`${at}${path}`, { method, ...json, headers: { ...type, ...headers } })
    const text = await response.text()
    return { status: response.status, body: (text === '' ? undefined : JSON.parse(text)) as Body }
  }
  const jobs = `${root}/v1/pipeline/jobs`
  return {
    start: (config?: unknown) => ask<Started>('POST', `${root}/v1/pipeline/scheduled-run-async`, config),
    status: (url: string) => ask<Job>('GET', url),
    job: async (id: string) => (await ask<Job>('GET', `${jobs}/${id}`)).body,
    list: (query = '') => ask<{ jobs: Job[]; total: number; running_count: number }>('GET', `${jobs}${query}`),
    cancel: (id: string) =>
      ask<{ cancelled: boolean; message?: string; reason?: string }>('POST', `${jobs}/${id}/cancel`),
    /** The events of a stream after the last seen one, until the server ends it or the signal aborts. */
    async *follow(url: string, last?: string, signal?: AbortSignal): AsyncGenerator<StreamEvent, void, void> {
      const resumed: Record<string, string> = last === undefined ? {} : { 'last-event-id': last }
      const response = await fetch(`${at}${url}`, {
        headers: { accept: 'text/event-stream', ...headers, ...resumed },
        ...(signal && { signal }),
      })
      const decoder = new TextDecoder()
      let rest = ''
      for await (const part of response.body ?? []) {
        rest += decoder.decode(part as Uint8Array, { stream: true })
        const frames = rest.split('\n\n')
        rest = frames.pop()!
        for (const frame of frames) {
          const fields = Object.fromEntries(frame.split('\n').map(line => line.split(/: (.*)/s).slice(0, 2)))
          if (fields.data !== undefined) yield { id: fields.id, event: fields.event, data: JSON.parse(fields.data) }
        }
      }
    },
    hasEnded: ({ status }: Pick<Job, 'status'>) => terminal.includes(status),
  }
}

export type PipelineClient = ReturnType<typeof pipelineClient>
