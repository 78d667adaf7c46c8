import { ownQueueOf } from '../../kernel/datum.ts'
import { Problem } from '../../kernel/problem.ts'
import type { SaidArtifact } from '../../protocol/files/artifacts.ts'
import { list, view } from '../../protocol/shapes.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import { isObject } from '../../schema/check.ts'
import type { AskersEngine } from '../askers-engine.ts'
import { type DialectRequest, type DialectRoute, good, someBody } from '../dialect.ts'
import { anyList, anyText, jsonObject, oneWordOf } from '../kit/fields.ts'
import { allItems } from '../kit/pages.ts'
import { readBody } from '../kit/read.ts'
import { wordFor } from '../words.ts'
import { epochOf, nonEmptyText, openEpochOf, podName } from './pods.ts'
import { datumNow, datumShape, inputFileShape, outputFileShape, toInputFiles, toOutputFile } from './views.ts'
import { words } from './words.ts'

/** A datum is a task of a job. A standalone task is not found. */
function datumIn(task: TaskView): TaskView & { jobId: string } {
  if (task.jobId === null) throw new Problem('TASK_NOT_FOUND', { id: task.id })
  return { ...task, jobId: task.jobId }
}

/** A datum that a pod may report on: it is in the queue from which pods reserve. */
async function reservedDatum(engine: AskersEngine, id: string): Promise<TaskView & { jobId: string }> {
  const task = datumIn(await engine.heldTask(id))
  if (task.stageId === null || task.queue !== ownQueueOf(task.stageId)) throw new Problem('LEASE_LOST', { id: task.id })
  return task
}

const status = oneWordOf(['done', 'error'])
const settleFields = { status, output: anyText, error_message: anyText, backtrace: anyText }
const filesFields = { pod_name: podName, output_files: anyList }
const fromPod = { required: ['pod_name', 'output_files'] } as const

async function settle({ engine, params, body }: DialectRequest) {
  const { pod_name, datum } = readBody(
    body,
    { pod_name: podName, datum: jsonObject },
    { required: ['pod_name', 'datum'] },
  )
  const { status, output, error_message, backtrace } = readBody(datum, settleFields, {
    required: ['status'],
    at: 'datum',
  })
  const isDone = status === 'done'
  if (isDone !== (error_message === undefined) || (isDone && backtrace !== undefined)) {
    const must = isDone ? 'be null, like backtrace, for a datum that is done' : 'be given with an error'
    throw new Problem('OPTION_INVALID', { option: 'error_message', must })
  }
  const held = await reservedDatum(engine, params.id!)
  const { id } = held
  const epoch = await epochOf(engine, held, pod_name)
  const outputs = output === undefined ? {} : { output: truncated(output) }
  const stack = backtrace === undefined ? {} : { stack: truncated(backtrace) }
  const task = isDone
    ? await engine.succeed(id, epoch, outputs)
    : await engine.fail(id, epoch, { error: { message: truncated(error_message!, 10_000), ...stack, ...outputs } })
  return good({ datum: await datumNow(engine, task, await engine.job(held.jobId)) })
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
function fileAt(uri: string, outputs: string, id: string): SaidArtifact {
  if (!uri.startsWith(outputs) || !uri.isWellFormed()) throw new Problem('ARTIFACT_OUTSIDE', { id, uri, outputs })
  const name = uri.slice(outputs.length)
  return { name, uri: `${outputs}${name.split('/').map(encodeURIComponent).join('/')}`, state: 'registered' }
}

async function register({ engine, params, body }: DialectRequest) {
  const { pod_name, output_files } = readBody(body, filesFields, fromPod)
  const uris = output_files.map(
    (file, n) => readBody(file, { uri: nonEmptyText }, { required: ['uri'], at: `output_files[${n}]` }).uri,
  )
  const task = await reservedDatum(engine, params.id!)
  const epoch = openEpochOf(task, pod_name)
  const outputs = outputFolderOf(task)
  const artifacts = uris.map(uri => fileAt(uri, outputs, task.id))
  const files = await engine.reportArtifacts(task.id, epoch, { artifacts, whole: true })
  return good({ output_files: files.map(file => toOutputFile(file, outputs)) })
}

async function update({ engine, params, body }: DialectRequest) {
  const { pod_name, output_files } = readBody(body, filesFields, fromPod)
  const updates = output_files.map((file, n) =>
    readBody(file, { id: nonEmptyText, status }, { required: ['id', 'status'], at: `output_files[${n}]` }),
  )
  const task = await reservedDatum(engine, params.id!)
  const { id } = task
  const epoch = openEpochOf(task, pod_name)
  const allFiles = await allItems(paging => engine.taskArtifacts(id, paging))
  const registered = new Map(allFiles.filter(file => file.epoch === epoch).map(file => [file.id, file]))
  const artifacts = updates.map(({ id: file, status }): SaidArtifact => {
    const known = registered.get(file.toLowerCase())
    if (known === undefined) throw new Problem('ARTIFACT_UNKNOWN', { id, file })
    const { name, uri } = known
    const was = wordFor(words.artifact, known, 0)
    if (was !== 'running' && was !== status) throw new Problem('MOVE_REFUSED', { file, status: was, move: status })
    if (status === 'error') return { name, uri, state: 'error', error: 'The worker could not upload it.' }
    return { name, uri, state: 'uploaded' }
  })
  if (artifacts.length > 0) await engine.reportArtifacts(id, epoch, { artifacts })
  return { status: 204 }
}

export const datumRoutes: readonly DialectRoute[] = [
  {
    method: 'PATCH',
    path: '/datums/{id}',
    needs: 'work',
    also: 'read',
    summary: 'Report a datum as done or in error. Only the pod that holds it may.',
    takes: someBody,
    answers: view<{ datum: object }>({ datum: datumShape }),
    handle: settle,
  },
  {
    method: 'GET',
    path: '/datums/{id}/describe',
    needs: 'read',
    summary: 'Get a datum and its input files.',
    answers: view<{ datum: object; input_files: object[] }>({ datum: datumShape, input_files: list(inputFileShape) }),
    async handle(request) {
      const task = datumIn(await request.engine.task(request.params.id!))
      const datum = await datumNow(request.engine, task, await request.engine.job(task.jobId))
      return good({ datum, input_files: toInputFiles(task) })
    },
  },
  {
    method: 'POST',
    path: '/datums/{id}/output_files',
    needs: 'work',
    also: 'read',
    summary: 'Register all output files of a datum before uploading them. The same files again return the same answer.',
    takes: someBody,
    answers: view<{ output_files: object[] }>({ output_files: list(outputFileShape) }),
    handle: register,
  },
  {
    method: 'PATCH',
    path: '/datums/{id}/output_files',
    needs: 'work',
    also: 'read',
    summary: 'Report which files were uploaded and which failed.',
    takes: someBody,
    answers: null,
    handle: update,
  },
]
