/** Jobs, datums and files as Falconeri shows them, and their JSON Schemas. */
import { createHash } from 'node:crypto'
import { type DatumInput, ownQueueOf } from '../../kernel/datum.ts'
import { idOfHash } from '../../kernel/id.ts'
import { Problem } from '../../kernel/problem.ts'
import type { ArtifactView } from '../../protocol/files/artifacts.ts'
import type { JobView } from '../../protocol/jobs/jobs.ts'
import { id, list, orNull, text, view, whole, words as wordsOf } from '../../protocol/shapes.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import { isObject, type Schema } from '../../schema/check.ts'
import { type PipelineSpec, pipelineIn, triesOf } from '../../spec/pipeline.ts'
import type { DialectEngine } from '../dialect-engine.ts'
import { wordFor } from '../words.ts'
import { words } from './words.ts'

export const statuses = ['ready', 'running', 'done', 'error', 'canceled'] as const
export type Status = (typeof statuses)[number]

const at: Schema = { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{6}$' }
const status = wordsOf(...statuses)
const stamps = { id, created_at: at, updated_at: at }

/** Falconeri's timestamps are in UTC without a zone, with microseconds. */
const naive = (iso: string) => iso.replace(/(\.\d{3})Z$/, '$1000')

/** The same UUID for the same texts. */
export const idFrom = (...texts: readonly string[]) => idOfHash(digest(texts).toString('hex'))

export const digest = (texts: readonly string[]) => createHash('sha256').update(JSON.stringify(texts)).digest()

/**
 * The parts of a job that its datums show, and the queues that its pods claim from. Only the queues may change: stages
 * can be added.
 */
export function factsOf({ input, stages }: JobView) {
  const spec = pipelineIn(input)
  return {
    /** Undefined: the job was not made from a pipeline. */
    tries: spec === undefined ? undefined : triesOf(spec),
    /** The queues that hold nothing but this job's datums. */
    queues: stages.flatMap(({ id, queue }) => (queue === ownQueueOf(id) ? [queue] : [])),
  }
}

export type JobFacts = ReturnType<typeof factsOf>

/** Only the status of a datum that is being retried depends on the time. */
export async function datumNow(engine: Pick<DialectEngine, 'clock'>, task: TaskView, job: JobFacts) {
  return toDatum(task, job, task.state === 'retrying' ? await engine.clock() : 0)
}

/** Jobs that were not made from a pipeline can only be read. */
export function pipelineOf({ id, input }: JobView): PipelineSpec {
  const spec = pipelineIn(input)
  if (spec === undefined) throw new Problem('JOB_NOT_FOUND', { id, why: 'it was not made from a pipeline spec' })
  return spec
}

export function toJob(job: JobView) {
  const spec = pipelineIn(job.input)
  const outputs = job.stages.map(({ files }) => files?.outputs).findLast(folder => folder != null)
  return {
    id: job.id,
    created_at: naive(job.createdAt),
    updated_at: naive(job.changedAt),
    status: words.job[job.state],
    pipeline_spec: spec ?? null,
    job_name: job.name,
    command: spec?.transform.cmd ?? [],
    egress_uri: spec?.egress.URI ?? outputs ?? '',
  }
}

/** A blocked task has no word of its own: its stage is held. It is shown as ready. */
export const statusOf = (task: Pick<TaskView, 'state' | 'runAt'>, now: number) =>
  (wordFor(words.task, task, now) ?? 'ready') as Status

export function toDatum(task: TaskView, { tries }: Pick<JobFacts, 'tries'>, now: number) {
  const { error } = task
  return {
    id: task.id,
    created_at: naive(task.createdAt),
    updated_at: naive(task.changedAt),
    status: statusOf(task, now),
    job_id: task.jobId!,
    error_message: error?.message ?? null,
    ...podOf(task.owner),
    backtrace: error?.stack ?? null,
    output: error?.output ?? textOf(task.output),
    attempted_run_count: task.epoch,
    maximum_allowed_run_count: tries ?? Math.max(1, task.epoch),
  }
}

/** A claim is made as `node/pod`. */
export function podOf(worker: string | null): { node_name: string | null; pod_name: string | null } {
  if (worker === null) return { node_name: null, pod_name: null }
  const slash = worker.indexOf('/')
  return { node_name: slash < 0 ? null : worker.slice(0, slash), pod_name: worker.slice(slash + 1) }
}

/**
 * The errors of the job itself, as datums in error that do not exist: the client prints the errors of datums, and has no
 * place for those of a job.
 */
export function reasonsOf(job: JobView): ReturnType<typeof toDatum>[] {
  const ofStages = job.stages.flatMap(({ error }) => (error === null ? [] : [error.message]))
  const reasons = job.state === 'expired' ? [...ofStages, 'The job ran longer than job_timeout.'] : ofStages
  const spec = pipelineIn(job.input)
  return reasons.map((reason, index) => ({
    id: idFrom('reason', job.id, String(index)),
    created_at: naive(job.createdAt),
    updated_at: naive(job.changedAt),
    status: 'error',
    job_id: job.id,
    error_message: reason,
    node_name: null,
    pod_name: null,
    backtrace: null,
    output: null,
    attempted_run_count: 0,
    maximum_allowed_run_count: spec === undefined ? 1 : triesOf(spec),
  }))
}

const textOf = (output: unknown) => (output === null || typeof output === 'string' ? output : JSON.stringify(output))

export function toInputFiles(task: TaskView) {
  const inputs = isObject(task.payload) && Array.isArray(task.payload.inputs) ? task.payload.inputs : []
  return (inputs as readonly DatumInput[]).map(({ name, uri, path }, index) => ({
    id: idFrom('input file', task.id, String(index)),
    created_at: naive(task.createdAt),
    datum_id: task.id,
    uri: plainUri(uri),
    local_path: `/pfs/${name}/${path}`,
    job_id: task.jobId!,
  }))
}

/** Falconeri's workers split `s3://` URIs into bucket and key without decoding them. */
const plainUri = (uri: string) => (uri.startsWith('s3://') ? decodeURIComponent(uri) : uri)

/** Shows the URI that the worker sent: the output folder and the unescaped path. */
export function toOutputFile(file: ArtifactView, outputs: string) {
  return {
    id: file.id,
    created_at: naive(file.createdAt),
    updated_at: naive(file.changedAt),
    status: wordFor(words.artifact, file)!,
    job_id: file.jobId!,
    datum_id: file.taskId,
    uri: `${outputs}${file.name}`,
  }
}

export const jobShape = view<ReturnType<typeof toJob>>({
  ...stamps,
  status,
  pipeline_spec: orNull({ type: 'object' }),
  job_name: text,
  command: list(text),
  egress_uri: text,
})

export const datumShape = view<ReturnType<typeof toDatum>>({
  ...stamps,
  status,
  job_id: id,
  error_message: orNull(text),
  node_name: orNull(text),
  pod_name: orNull(text),
  backtrace: orNull(text),
  output: orNull(text),
  attempted_run_count: whole,
  maximum_allowed_run_count: whole,
})

export const inputFileShape = view<ReturnType<typeof toInputFiles>[number]>({
  id,
  created_at: at,
  datum_id: id,
  uri: text,
  local_path: text,
  job_id: id,
})

export const outputFileShape = view<ReturnType<typeof toOutputFile>>({
  ...stamps,
  status,
  job_id: id,
  datum_id: id,
  uri: text,
})

export const countShape = view<{ status: Status; count: number; rerunable_count: number }>({
  status,
  count: whole,
  rerunable_count: whole,
})
