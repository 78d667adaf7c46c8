import { ownQueueOf } from '../../kernel/datum.ts'
import { Problem } from '../../kernel/problem.ts'
import type { ArtifactView, SaidArtifact } from '../../protocol/files/artifacts.ts'
import { list, view } from '../../protocol/shapes.ts'
import type { Page, TaskView } from '../../protocol/tasks/tasks.ts'
import { isObject } from '../../schema/check.ts'
import { type Ask, type DialectRoute, good, someBody } from '../dialect.ts'
import { wordFor } from '../words.ts'
import { epochOf, openEpochOf, podName } from './pods.ts'
import { ending, list as items, kept, object, read, text, textOrNull } from './read.ts'
import { datumNow, datumShape, inputFileShape, outputFileShape, toInputFiles, toOutputFile } from './shapes.ts'
import { words } from './words.ts'

/** A task of a job: another is no datum. */
function datumIn(task: TaskView): TaskView & { jobId: string } {
  if (task.jobId === null) throw new Problem('TASK_NOT_FOUND', { id: task.id })
  return { ...task, jobId: task.jobId }
}

/** One that a pod may speak of: it lies where pods reserve. */
async function reservedOf({ engine, params }: Ask): Promise<TaskView & { jobId: string }> {
  const task = datumIn(await engine.heldTask(params.id!))
  if (task.stageId === null || task.queue !== ownQueueOf(task.stageId)) throw new Problem('LEASE_LOST', { id: task.id })
  return task
}

async function settle(ask: Ask) {
  const { engine, body } = ask
  const { pod_name, datum } = read(body, { pod_name: podName, datum: object })
  const { status, output, error_message, backtrace } = read(datum, {
    status: ending,
    output: textOrNull,
    error_message: textOrNull,
    backtrace: textOrNull,
  })
  const isDone = status === 'done'
  if (isDone !== (error_message === null) || (isDone && backtrace !== null)) {
    const must = isDone ? 'be null, as backtrace must, of a datum that is done' : 'be given with an error'
    throw new Problem('OPTION_INVALID', { option: 'error_message', must })
  }
  const held = await reservedOf(ask)
  const { id } = held
  const epoch = await epochOf(engine, held, pod_name)
  const said = output === null ? {} : { output: kept(output) }
  const stack = backtrace === null ? {} : { stack: kept(backtrace) }
  const task = isDone
    ? await engine.succeed(id, epoch, said)
    : await engine.fail(id, epoch, { error: { message: kept(error_message!, 10_000), ...stack, ...said } })
  return good({ datum: await datumNow(engine, task, await engine.job(held.jobId)) })
}

/** The folder that its files go to. */
function outputsOf({ id, payload }: TaskView): string {
  const outputs = isObject(payload) ? payload.outputs : undefined
  if (typeof outputs !== 'string') throw new Problem('ARTIFACT_OUTSIDE', { id, outputs: null })
  return outputs
}

/** Its workers append the path of a file to the folder as it is; in a URI of ours it is escaped. */
function fileAt(uri: string, outputs: string, id: string): SaidArtifact {
  if (!uri.startsWith(outputs) || !uri.isWellFormed()) throw new Problem('ARTIFACT_OUTSIDE', { id, uri, outputs })
  const name = uri.slice(outputs.length)
  return { name, uri: `${outputs}${name.split('/').map(encodeURIComponent).join('/')}`, state: 'registered' }
}

async function register(ask: Ask) {
  const { engine, body } = ask
  const { pod_name, output_files } = read(body, { pod_name: podName, output_files: items })
  const uris = output_files.map(file => read(file, { uri: text }).uri)
  const task = await reservedOf(ask)
  const epoch = openEpochOf(task, pod_name)
  const outputs = outputsOf(task)
  const artifacts = uris.map(uri => fileAt(uri, outputs, task.id))
  const files = await engine.reportArtifacts(task.id, epoch, { artifacts, whole: true })
  return good({ output_files: files.map(file => toOutputFile(file, outputs)) })
}

/** The files that an attempt has registered. */
async function filesOf(engine: Ask['engine'], id: string, epoch: number): Promise<ArtifactView[]> {
  const found: ArtifactView[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: Page<ArtifactView> = await engine.taskArtifacts(id, { limit: 1000, ...(cursor !== '' && { cursor }) })
    found.push(...page.items.filter(file => file.epoch === epoch))
    cursor = page.next
  }
  return found
}

async function update(ask: Ask) {
  const { engine, body } = ask
  const { pod_name, output_files } = read(body, { pod_name: podName, output_files: items })
  const said = output_files.map(file => read(file, { id: text, status: ending }))
  const task = await reservedOf(ask)
  const { id } = task
  const epoch = openEpochOf(task, pod_name)
  const files = new Map((await filesOf(engine, id, epoch)).map(file => [file.id, file]))
  const artifacts = said.map(({ id: file, status }): SaidArtifact => {
    const known = files.get(file.toLowerCase())
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
    says: 'Say that a datum is done, or that it ended in error; only whoever holds it may.',
    takes: someBody,
    answers: view<{ datum: object }>({ datum: datumShape }),
    handle: settle,
  },
  {
    method: 'GET',
    path: '/datums/{id}/describe',
    needs: 'read',
    says: 'A datum and its input files.',
    answers: view<{ datum: object; input_files: object[] }>({ datum: datumShape, input_files: list(inputFileShape) }),
    async handle(ask) {
      const task = datumIn(await ask.engine.task(ask.params.id!))
      const datum = await datumNow(ask.engine, task, await ask.engine.job(task.jobId))
      return good({ datum, input_files: toInputFiles(task) })
    },
  },
  {
    method: 'POST',
    path: '/datums/{id}/output_files',
    needs: 'work',
    also: 'read',
    says: 'Register all files of a datum before they are uploaded; the same again are answered as before.',
    takes: someBody,
    answers: view<{ output_files: object[] }>({ output_files: list(outputFileShape) }),
    handle: register,
  },
  {
    method: 'PATCH',
    path: '/datums/{id}/output_files',
    needs: 'work',
    also: 'read',
    says: 'Say which files are uploaded, and which could not be.',
    takes: someBody,
    answers: null,
    handle: update,
  },
]
