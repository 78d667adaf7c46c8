/** What Falconeri's answers hold: the schemas, and our views in their shapes. */

import type { DatumInput } from '../../kernel/datum.ts'
import type { ArtifactView } from '../../protocol/files/artifacts.ts'
import type { JobView } from '../../protocol/jobs/jobs.ts'
import { id, list, orNull, text, view, whole, words as wordsOf } from '../../protocol/shapes.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import { isObject, type Schema } from '../../schema/check.ts'
import { type PipelineSpec, pipelineIn, triesOf } from '../../spec/pipeline.ts'
import type { AskersEngine } from '../askers-engine.ts'
import { wordFor } from '../words.ts'
import { idFrom } from './ids.ts'
import { podOf } from './pods.ts'
import { words } from './words.ts'

export const statuses = ['ready', 'running', 'done', 'error', 'canceled'] as const
export type Status = (typeof statuses)[number]

interface Job {
  readonly id: string
  readonly created_at: string
  readonly updated_at: string
  readonly status: string
  readonly pipeline_spec: PipelineSpec | null
  readonly job_name: string
  readonly command: readonly string[]
  readonly egress_uri: string
}

interface Datum {
  readonly id: string
  readonly created_at: string
  readonly updated_at: string
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

interface InputFile {
  readonly id: string
  readonly created_at: string
  readonly datum_id: string
  readonly uri: string
  readonly local_path: string
  readonly job_id: string
}

interface OutputFile {
  readonly id: string
  readonly created_at: string
  readonly updated_at: string
  readonly status: string
  readonly job_id: string
  readonly datum_id: string
  readonly uri: string
}

const at: Schema = { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{6}$' }
const status = wordsOf(...statuses)
const stamps = { id, created_at: at, updated_at: at }

export const jobShape = view<Job>({
  ...stamps,
  status,
  pipeline_spec: orNull({ type: 'object' }),
  job_name: text,
  command: list(text),
  egress_uri: text,
})

export const datumShape = view<Datum>({
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

export const inputFileShape = view<InputFile>({
  id,
  created_at: at,
  datum_id: id,
  uri: text,
  local_path: text,
  job_id: id,
})

export const outputFileShape = view<OutputFile>({ ...stamps, status, job_id: id, datum_id: id, uri: text })

export const countShape = view<{ status: Status; count: number; rerunable_count: number }>({
  status,
  count: whole,
  rerunable_count: whole,
})

/** Naive, in UTC, with microseconds. */
const naive = (iso: string) => iso.replace(/(\.\d{3})Z$/, '$1000')

/** The words for jobs and files do not depend on the time. */
const noTime = 0

/** Only the status of a datum that is being retried depends on the time. */
export async function datumNow(engine: Pick<AskersEngine, 'clock'>, task: TaskView, job: JobView): Promise<Datum> {
  return toDatum(task, job, task.state === 'retrying' ? await engine.clock() : noTime)
}

export function toJob(job: JobView): Job {
  const spec = pipelineIn(job.input)
  const outputs = job.stages.map(({ files }) => files?.outputs).findLast(folder => folder != null)
  return {
    id: job.id,
    created_at: naive(job.createdAt),
    updated_at: naive(job.changedAt),
    status: wordFor(words.job, job, noTime)!,
    pipeline_spec: spec ?? null,
    job_name: job.name,
    command: spec?.transform.cmd ?? [],
    egress_uri: spec?.egress.URI ?? outputs ?? '',
  }
}

/** A task whose stage is held has no word; it is as good as ready. */
export const statusOf = (task: Pick<TaskView, 'state' | 'runAt'>, now: number) =>
  (wordFor(words.task, task, now) ?? 'ready') as Status

export function toDatum(task: TaskView, job: JobView, now: number): Datum {
  const spec = pipelineIn(job.input)
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
    maximum_allowed_run_count: spec === undefined ? Math.max(1, task.epoch) : triesOf(spec),
  }
}

/**
 * Why the job itself is in trouble, as datums in error: its client prints the errors of datums, and has no place for those
 * of a job. There is no such datum.
 */
export function reasonsOf(job: JobView): Datum[] {
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

export function toInputFiles(task: TaskView): InputFile[] {
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

/** Its workers read `s3://` as a bucket and a key, and decode nothing. */
const plainUri = (uri: string) => (uri.startsWith('s3://') ? decodeURIComponent(uri) : uri)

/** As the worker named it: its outputs' folder, and the path in there as it is. */
export function toOutputFile(file: ArtifactView, outputs: string): OutputFile {
  return {
    id: file.id,
    created_at: naive(file.createdAt),
    updated_at: naive(file.changedAt),
    status: wordFor(words.artifact, file, noTime)!,
    job_id: file.jobId!,
    datum_id: file.taskId,
    uri: `${outputs}${file.name}`,
  }
}
