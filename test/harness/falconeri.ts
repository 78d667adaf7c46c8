/** The requests that Falconeri's client and pods send, against one of our servers. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { startBabysitter } from '../../src/babysitter/babysitter.ts'
import { findInputs } from '../../src/babysitter/chores.ts'
import { type Folder, folder } from './files.ts'
import { type Served, type ServedOptions, served } from './served.ts'

export interface Job {
  readonly id: string
  readonly status: string
  readonly job_name: string
  readonly command: readonly string[]
  readonly egress_uri: string
  readonly created_at: string
  readonly updated_at: string
  readonly pipeline_spec: unknown
}

export interface Datum {
  readonly id: string
  readonly status: string
  readonly job_id: string
  readonly error_message: string | null
  readonly node_name: string | null
  readonly pod_name: string | null
  readonly backtrace: string | null
  readonly output: string | null
  readonly attempted_run_count: number
  readonly maximum_allowed_run_count: number
}

export interface InputFile {
  readonly id: string
  readonly uri: string
  readonly local_path: string
}

export interface OutputFile {
  readonly id: string
  readonly status: string
  readonly uri: string
}

export interface Reserved {
  readonly datum: Datum
  readonly input_files: readonly InputFile[]
}

export interface Described {
  readonly job: Job
  readonly datum_status_counts: readonly { status: string; count: number; rerunable_count: number }[]
  readonly running_datums: readonly Datum[]
  readonly error_datums: readonly Datum[]
}

export interface Answer {
  readonly status: number
  readonly type: string | null
  readonly text: string
}

export interface FalconeriRig extends Served {
  readonly inbox: Folder
  readonly outbox: Folder
  /** A pipeline spec over the inbox. */
  spec(more?: Record<string, unknown>): Record<string, unknown>
  ask(method: string, path: string, json?: unknown, headers?: Record<string, string>): Promise<Answer>
  /** Like `ask`, but requires status 200 and returns the parsed answer. */
  get<T>(path: string): Promise<T>
  post<T>(path: string, json?: unknown): Promise<T>
  run(more?: Record<string, unknown>): Promise<Job>
  job(id: string): Promise<Job>
  describe(id: string): Promise<Described>
  pod(name: string, node?: string): Pod
}

/** The requests of `falconeri-worker`. */
export interface Pod {
  readonly name: string
  reserve(jobId: string): Promise<Reserved | null>
  /** Like `reserve`, but fails if the job has no datum left. */
  take(jobId: string): Promise<Reserved>
  register(datumId: string, uris: readonly string[]): Promise<Answer>
  files(datumId: string, uris: readonly string[]): Promise<readonly OutputFile[]>
  uploaded(datumId: string, files: readonly { id: string; status: string }[]): Promise<Answer>
  done(datumId: string, output?: string): Promise<Answer>
  error(datumId: string, message?: string): Promise<Answer>
}

export async function falconeriRig(t: TestContext, options: ServedOptions = {}): Promise<FalconeriRig> {
  const run = await served(t, options)
  const babysitter = startBabysitter(run.engine, [findInputs])
  t.after(() => babysitter.stop())
  const [inbox, outbox] = [await folder(t), await folder(t)]
  return { ...run, inbox, outbox, ...speaking(`${run.server.url}/dialects/falconeri`, inbox, outbox) }
}

/** Falconeri's requests to a server at this address. */
export function speaking(root: string, inbox: Pick<Folder, 'uri'>, outbox: Pick<Folder, 'uri'>) {
  const ask = async (method: string, path: string, json?: unknown, headers: Record<string, string> = {}) => {
    const body = json === undefined ? {} : { body: JSON.stringify(json) }
    const type = json === undefined ? {} : { 'content-type': 'application/json' }
    const response = await fetch(root + path, { method, ...body, headers: { ...type, ...headers } })
    return { status: response.status, type: response.headers.get('content-type'), text: await response.text() }
  }
  const well = async <T>(method: string, path: string, json?: unknown): Promise<T> => {
    const answer = await ask(method, path, json)
    assert.equal(answer.status, 200, `${method} ${path}: ${answer.text}`)
    return JSON.parse(answer.text) as T
  }
  const spec = (more: Record<string, unknown> = {}) => ({
    pipeline: { name: 'Word_Count' },
    transform: { cmd: ['wc', '-w'], image: 'debian:12', image_pull_policy: null, env: {}, secrets: [] },
    parallelism_spec: { constant: 2 },
    resource_requests: { memory: '64Mi', cpu: 0.1 },
    datum_tries: null,
    job_timeout: null,
    node_selector: {},
    input: { atom: { URI: inbox.uri, repo: 'texts', glob: '/*' } },
    egress: { URI: outbox.uri },
    ...more,
  })
  const get = <T>(path: string) => well<T>('GET', path)
  const post = <T>(path: string, json?: unknown) => well<T>('POST', path, json)
  return {
    spec,
    ask,
    get,
    post,
    run: async (more: Record<string, unknown> = {}) => (await post<{ job: Job }>('/jobs', { job: spec(more) })).job,
    job: async (id: string) => (await get<{ job: Job }>(`/jobs/${id}`)).job,
    describe: (id: string) => get<Described>(`/jobs/${id}/describe`),
    pod(name: string, node = 'node-1'): Pod {
      const reserve = (id: string) =>
        post<Reserved | null>(`/jobs/${id}/reserve_next_datum`, { node_name: node, pod_name: name })
      const say = (method: string, path: string, more: object) => ask(method, path, { pod_name: name, ...more })
      const register = (id: string, uris: readonly string[]) =>
        say('POST', `/datums/${id}/output_files`, { output_files: uris.map(uri => ({ uri })) })
      const settle = (id: string, datum: object) =>
        say('PATCH', `/datums/${id}`, { datum: { output: '', error_message: null, backtrace: null, ...datum } })
      return {
        name,
        reserve,
        async take(id) {
          const reserved = await reserve(id)
          assert.ok(reserved !== null, 'there is a datum')
          return reserved
        },
        register,
        async files(id, uris) {
          const answer = await register(id, uris)
          assert.equal(answer.status, 200, answer.text)
          return JSON.parse(answer.text).output_files
        },
        uploaded: (id, output_files) => say('PATCH', `/datums/${id}/output_files`, { output_files }),
        done: (id, output = '') => settle(id, { status: 'done', output }),
        error: (id, error_message = 'exit status: 1') =>
          settle(id, { status: 'error', output: 'reading…\n', error_message, backtrace: 'at main.rs:7' }),
      }
    },
  }
}
