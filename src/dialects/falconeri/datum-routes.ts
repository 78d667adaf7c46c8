/**
 * Falconeri's workers know neither leases nor epochs: the name of the pod stands for both. A claim is made as
 * `node/pod`, like those of Pawl's own workers in Kubernetes. So both names are kept with the lease, and a runner that
 * sees the pod vanish knows whose lease it was. A pod's reports count for the epoch of its own last attempt: the fence
 * is the same for all.
 */
import { ownQueueOf } from '../../kernel/datum.ts'
import { Problem } from '../../kernel/problem.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import type { ReportedArtifact } from '../../protocol/files/artifacts.ts'
import { list, orNull, view } from '../../protocol/shapes.ts'
import type { HeldTask } from '../../protocol/tasks/sync.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import { field, isObject, object, oneOf, type ValueOf } from '../../schema/check.ts'
import { type DialectRequest, type DialectRoute, good, route, someBody } from '../dialect.ts'
import type { DialectEngine } from '../dialect-engine.ts'
import { allItems } from '../kit/pages.ts'
import { anyList, anyText, openBody, readBody } from '../kit/requests.ts'
import type { KnownLease } from '../known-leases.ts'
import { wordFor } from '../words.ts'
import {
  datumNow,
  datumShape,
  factsOf,
  idFrom,
  inputFileShape,
  type JobFacts,
  outputFileShape,
  pipelineOf,
  podOf,
  toInputFiles,
  toOutputFile,
} from './views.ts'
import { words } from './words.ts'

/** A datum is a task of a job. A standalone task is not found. */
function datumIn(task: TaskView): TaskView & { jobId: string } {
  if (task.jobId === null) throw new Problem('TASK_NOT_FOUND', { id: task.id })
  return { ...task, jobId: task.jobId }
}

type Reserved = Pick<TaskView, 'stageId' | 'queue'>

/** Pods reserve only from the queue of their stage. */
const isReserved = ({ stageId, queue }: Reserved) => stageId !== null && queue === ownQueueOf(stageId)

/** A datum that a pod may report on. */
async function reservedDatum(engine: DialectEngine, id: string): Promise<TaskView & { jobId: string }> {
  const task = datumIn(await engine.heldTask(id))
  if (!isReserved(task)) throw new Problem('LEASE_LOST', { id: task.id })
  return task
}

/** Does something as this pod under a lease that the server knows. Undefined: the datum must be read. */
function underKnownLease<Result>(
  engine: DialectEngine,
  id: string,
  pod: string,
  work: (lease: KnownLease) => Promise<Result>,
): Promise<Result | undefined> {
  return engine.underKnownLease(id, work, lease => isReserved(lease) && podOf(lease.owner).pod_name === pod)
}

const longestWorker = 200
const longestPod = 150

const isName = (value: unknown): value is string =>
  typeof value === 'string' && !/[/\0]/.test(value) && value.isWellFormed()
const podName = field<string>({ type: 'string' }, value =>
  isName(value) && value !== '' && value.length <= longestPod
    ? undefined
    : `be the name of a pod: at most ${longestPod} characters, without / and NUL`,
)
const nodeName = field<string>({ type: 'string' }, value => (isName(value) ? undefined : 'be the name of a node'))
const nonEmptyText = field<string>({ type: 'string' }, value =>
  typeof value === 'string' && value !== '' ? undefined : 'be a non-empty string',
)
const status = oneOf(['done', 'error'])

const bodies = {
  pod: openBody({ node_name: nodeName, pod_name: podName }, ['node_name', 'pod_name']),
  report: openBody({ pod_name: podName, datum: object }, ['pod_name', 'datum']),
  datum: openBody({ status, output: anyText, error_message: anyText, backtrace: anyText }, ['status']),
  files: openBody({ pod_name: podName, output_files: anyList }, ['pod_name', 'output_files']),
  newFile: openBody({ uri: nonEmptyText }, ['uri']),
  file: openBody({ id: nonEmptyText, status }, ['id', 'status']),
}

async function reserve(request: DialectRequest) {
  const { node_name, pod_name } = readBody(request.body, bodies.pod)
  const { engine, signal } = request
  const id = request.params.id!
  const { facts, isFresh } = await engine.jobFacts(id, factsOf)
  if (facts.tries === undefined) pipelineOf(await engine.job(id))
  const worker = workerOf(node_name, pod_name)
  const session = idFrom('pod', id.toLowerCase(), pod_name)
  const take = ({ queues }: JobFacts) => engine.take({ worker, session, queues, unlessHolding: true }, {}, signal)
  let [task] = await take(facts)
  // The job may have been deleted, or have got more stages.
  if (task === undefined && !isFresh) {
    const { facts: now } = await engine.jobFacts(id, factsOf, { fresh: true })
    if (now.queues.join() !== facts.queues.join()) [task] = await take(now)
  }
  return good(
    task === undefined ? null : { datum: await datumNow(engine, task, facts), input_files: toInputFiles(task) },
  )
}

/** The node's name is for people only, so it is cut to the room that is left. */
function workerOf(node: string, pod: string): string {
  return `${node.slice(0, longestWorker - pod.length - 1)}/${pod}`
}

async function settle({ engine, params, body }: DialectRequest) {
  const { pod_name, datum } = readBody(body, bodies.report)
  const { status, output, error_message, backtrace } = readBody(datum, bodies.datum, 'datum')
  const isDone = status === 'done'
  if (isDone !== (error_message === undefined) || (isDone && backtrace !== undefined)) {
    const must = isDone ? 'be null, like backtrace, for a datum that is done' : 'be given with an error'
    throw new Problem('OPTION_INVALID', { option: 'error_message', must })
  }
  const outputs = output === undefined ? {} : { output: truncated(output) }
  const stack = backtrace === undefined ? {} : { stack: truncated(backtrace) }
  const end = (id: string, under: number | KnownLease) =>
    isDone
      ? engine.succeed(id, under, outputs)
      : engine.fail(id, under, { error: { message: truncated(error_message!, 10_000), ...stack, ...outputs } })
  const ended = await underKnownLease(engine, params.id!, pod_name, lease => end(lease.id, lease))
  const task = ended ?? (await endAsRead(engine, params.id!, pod_name, end))
  const { facts } = await engine.jobFacts(datumIn(task).jobId, factsOf)
  return good({ datum: await datumNow(engine, task, facts) })
}

async function endAsRead(
  engine: DialectEngine,
  id: string,
  pod: string,
  end: (id: string, epoch: number) => Promise<TaskView>,
): Promise<TaskView> {
  const held = await reservedDatum(engine, id)
  return end(held.id, await epochOf(engine, held, pod))
}

/**
 * The epoch of this pod's last attempt at a datum. A pod that never held it is refused like one that has lost it. The task
 * itself names the pod that holds it now; only for other pods is the history read.
 */
async function epochOf(engine: DialectEngine, datum: TaskView, pod: string): Promise<number> {
  if (isHeldBy(datum, pod)) return datum.epoch
  const mine = (await engine.attempts(datum.id)).findLast(({ worker }) => podOf(worker).pod_name === pod)
  if (mine === undefined) throw new Problem('LEASE_LOST', { id: datum.id, pod })
  return mine.epoch
}

/** Like `epochOf`, but only while the pod holds the datum. */
function openEpochOf(datum: TaskView, pod: string): number {
  if (!isHeldBy(datum, pod)) throw new Problem('LEASE_LOST', { id: datum.id, pod })
  return datum.epoch
}

function isHeldBy({ state, owner }: TaskView, pod: string): boolean {
  return taskLifecycle.states[state].kind === 'held' && podOf(owner).pod_name === pod
}

/** Any program's text, as the database can store it. Only the end is kept, which usually tells the most. */
function truncated(text: string, most = 65_536): string {
  const clean = text.toWellFormed().replaceAll('\0', '\uFFFD')
  if (clean.length <= most) return clean
  return `(the first ${clean.length - most} characters are not kept)\n${clean.slice(-most).toWellFormed()}`
}

/** The folder for its output files. */
function outputFolderOf({ id, payload }: TaskView): string {
  const outputs = isObject(payload) ? payload.outputs : undefined
  if (typeof outputs !== 'string') throw new Problem('ARTIFACT_OUTSIDE', { id, outputs: null })
  return outputs
}

/** Falconeri's workers append a file's path to the folder unescaped. Pawl's URIs are escaped. */
function fileAt(uri: string, outputs: string, id: string): ReportedArtifact {
  if (!uri.startsWith(outputs) || !uri.isWellFormed()) throw new Problem('ARTIFACT_OUTSIDE', { id, uri, outputs })
  const name = uri.slice(outputs.length)
  return { name, uri: `${outputs}${name.split('/').map(encodeURIComponent).join('/')}`, state: 'registered' }
}

async function register({ engine, params, body }: DialectRequest) {
  const { pod_name, output_files } = readBody(body, bodies.files)
  const uris = output_files.map((file, n) => readBody(file, bodies.newFile, `output_files[${n}]`).uri)
  const registerIn = async (held: HeldTask | KnownLease, outputs: string) => {
    const artifacts = uris.map(uri => fileAt(uri, outputs, held.id))
    const files = await engine.registerFiles(held, artifacts)
    return files.map(file => toOutputFile(file, outputs))
  }
  const files = await underKnownLease(engine, params.id!, pod_name, async lease =>
    lease.outputs === null ? undefined : registerIn(lease, lease.outputs),
  )
  if (files !== undefined) return good({ output_files: files })
  const task = await reservedDatum(engine, params.id!)
  const held = { id: task.id, epoch: openEpochOf(task, pod_name) }
  return good({ output_files: await registerIn(held, outputFolderOf(task)) })
}

async function update({ engine, params, body }: DialectRequest) {
  const { pod_name, output_files } = readBody(body, bodies.files)
  const updates = output_files.map((file, n) => readBody(file, bodies.file, `output_files[${n}]`))
  const isKnown = await underKnownLease(engine, params.id!, pod_name, async lease => {
    const known = updates.map(({ id, status }) => (status === 'done' ? lease.files.get(id.toLowerCase()) : undefined))
    // Repeated reports are compared with the ledger.
    for (const { id } of updates) lease.files.delete(id.toLowerCase())
    if (known.length === 0 || !known.every(file => file !== undefined)) return undefined
    await engine.reportFiles(
      lease,
      known.map(file => ({ ...file, state: 'uploaded' })),
    )
    return true
  })
  if (isKnown === undefined) await updateAsRead(engine, params.id!, pod_name, updates)
  return { status: 204 }
}

async function updateAsRead(
  engine: DialectEngine,
  datum: string,
  pod: string,
  updates: readonly ValueOf<typeof bodies.file>[],
): Promise<void> {
  const task = await reservedDatum(engine, datum)
  const { id } = task
  const epoch = openEpochOf(task, pod)
  const allFiles = await allItems(paging => engine.taskArtifacts(id, paging))
  const registered = new Map(allFiles.filter(file => file.epoch === epoch).map(file => [file.id, file]))
  const artifacts = updates.map(({ id: file, status }): ReportedArtifact => {
    const known = registered.get(file.toLowerCase())
    if (known === undefined) throw new Problem('ARTIFACT_UNKNOWN', { id, file })
    const { name, uri } = known
    const was = wordFor(words.artifact, known)
    if (was !== 'running' && was !== status) throw new Problem('MOVE_REFUSED', { file, status: was, move: status })
    if (status === 'error') return { name, uri, state: 'error', error: 'The worker could not upload it.' }
    return { name, uri, state: 'uploaded' }
  })
  if (artifacts.length > 0) await engine.reportFiles({ id, epoch }, artifacts)
}

export const datumRoutes: readonly DialectRoute[] = [
  route('POST /jobs/{id}/reserve_next_datum', 'work', {
    also: 'read',
    summary: 'Reserve the next datum, or return the one that the pod already holds. `null` if there is none now.',
    takes: someBody,
    answers: orNull(
      view<{ datum: object; input_files: object[] }>({ datum: datumShape, input_files: list(inputFileShape) }),
    ),
    handle: reserve,
  }),
  route('PATCH /datums/{id}', 'work', {
    also: 'read',
    summary: 'Report a datum as done or in error. Only the pod that holds it may.',
    takes: someBody,
    answers: view<{ datum: object }>({ datum: datumShape }),
    handle: settle,
  }),
  route('GET /datums/{id}/describe', 'read', {
    summary: 'Get a datum and its input files.',
    answers: view<{ datum: object; input_files: object[] }>({ datum: datumShape, input_files: list(inputFileShape) }),
    async handle(request) {
      const task = datumIn(await request.engine.task(request.params.id!))
      const { facts } = await request.engine.jobFacts(task.jobId, factsOf)
      const datum = await datumNow(request.engine, task, facts)
      return good({ datum, input_files: toInputFiles(task) })
    },
  }),
  route('POST /datums/{id}/output_files', 'work', {
    also: 'read',
    summary: 'Register all output files of a datum before uploading them. The same files again return the same answer.',
    takes: someBody,
    answers: view<{ output_files: object[] }>({ output_files: list(outputFileShape) }),
    handle: register,
  }),
  route('PATCH /datums/{id}/output_files', 'work', {
    also: 'read',
    summary: 'Report which files were uploaded and which failed.',
    takes: someBody,
    answers: null,
    handle: update,
  }),
]
