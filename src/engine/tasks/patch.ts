/**
 * What may be changed of a job, stage or task without moving it.
 *
 * Each change is an event (`from` = `to`), with who asked and what stood there before: metadata is where people keep
 * whose work it is and what was agreed, and an edit that leaves no trace could not be told from what was submitted.
 * A patch that changes nothing writes nothing.
 */
import { isDeepStrictEqual } from 'node:util'
import { Problem } from '../../kernel/problem.ts'
import { controlFields, jobPatchFields, metadataFields } from '../../protocol/fields.ts'
import type { JobView, StageView } from '../../protocol/jobs/jobs.ts'
import type { JobPatch, MetadataPatch, TaskView } from '../../protocol/tasks/tasks.ts'
import { isObject } from '../../schema/check.ts'
import { getStage } from '../../store/jobs/read-jobs.ts'
import { getTask } from '../../store/tasks/read-tasks.ts'
import { lockTasks, writeTaskUpdates } from '../../store/tasks/task-updates.ts'
import { checkedJson, checkId, checkOptions, type Fields } from '../check.ts'
import type { Context } from '../context.ts'
import { changePriority, request, why } from '../jobs/job-control.ts'
import { onStage } from '../jobs/stage-control.ts'
import { transact } from '../unit-of-work.ts'
import type { ControlCall } from './control.ts'
import { toTaskView } from './task-view.ts'

/** A patch stands in the event, which is written again with every later one: so it is small. */
const maxPatchBytes = 65_536

export async function patchJob(
  context: Context,
  id: string,
  patch: JobPatch,
  call: ControlCall = {},
): Promise<JobView> {
  check(context, patch, jobPatchFields, call)
  return request(context, id, call, ['patch', patch], async (book, tx) => {
    const { job } = book
    if (patch.priority !== undefined && patch.priority !== job.priority) await changePriority(book, tx, patch.priority)
    const edit = editOf(context, job.metadata, patch, call)
    if (edit === undefined) return
    const { metadata, payload } = edit
    book.moveJob({ to: job.state, type: 'job.metadata_changed', cause: 'metadata', payload }, { metadata })
  })
}

export async function patchStage(
  context: Context,
  id: string,
  patch: MetadataPatch,
  call: ControlCall = {},
): Promise<StageView> {
  check(context, patch, metadataFields, call)
  return onStage(context, id, call, ['patch', patch], async (book, stage, tx) => {
    const kept = await getStage(tx, stage.id)
    const edit = editOf(context, kept!.metadata, patch, call)
    if (edit === undefined) return
    const { metadata, payload } = edit
    const step = { to: stage.state, type: 'stage.metadata_changed', cause: 'metadata', payload }
    book.moveStage(stage, step, { metadata })
  })
}

/** Its job is not locked: nothing of the job follows from it, and a settle need not wait. */
export async function patchTask(
  context: Context,
  id: string,
  patch: MetadataPatch,
  call: ControlCall = {},
): Promise<TaskView> {
  check(context, patch, metadataFields, call)
  const taskId = checkId(id)
  return transact(context, call, [taskId, 'patch', patch], async tx => {
    const [task] = await lockTasks(tx, [taskId])
    if (task === undefined) throw new Problem('TASK_NOT_FOUND', { id })
    const edit = editOf(context, task.metadata, patch, call)
    if (edit !== undefined) {
      const { metadata, payload } = edit
      const step = { to: task.state, type: 'task.metadata_changed', cause: 'metadata', payload }
      const ruling = { task, steps: [step], patch: { metadata, edit: true as const } }
      await writeTaskUpdates(tx, [ruling], call.actor ?? 'operator')
    }
    return toTaskView((await getTask(tx, taskId))!)
  })
}

function check(context: Context, patch: MetadataPatch, fields: Fields, call: ControlCall): void {
  checkOptions(call, controlFields, 'patch')
  checkOptions(patch, fields, 'patch')
  const limit = Math.min(maxPatchBytes, context.maxPayloadBytes)
  if (patch.metadata !== undefined) checkedJson(patch.metadata, limit, 'metadata')
}

/** The metadata that a patch makes, and what its event says; undefined: it is what it was. */
function editOf(
  { maxPayloadBytes }: Context,
  kept: Record<string, unknown> | null,
  patch: MetadataPatch,
  call: ControlCall,
): { metadata: unknown; payload: Record<string, unknown> } | undefined {
  if (patch.metadata === undefined) return undefined
  const before = kept ?? {}
  // As JSON: what a patch holds that JSON does not (undefined, a Date) must not be merged as it is.
  const asked: unknown = JSON.parse(JSON.stringify(patch.metadata))
  const replaces = patch.replace === true
  const merged = (replaces ? asked : mergePatch(before, asked)) ?? {}
  const metadata: unknown = JSON.parse(checkedJson(merged, maxPayloadBytes, 'metadata'))
  if (isDeepStrictEqual(metadata, before)) return undefined
  const touched = asked === null || replaces ? before : pick(before, Object.keys(asked as object))
  return { metadata, payload: { patch: asked, ...(replaces && { replaces }), before: touched, ...why(call) } }
}

/** The values of these keys; null where there is none. */
function pick(from: Record<string, unknown>, keys: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(keys.map(key => [key, Object.hasOwn(from, key) ? from[key] : null]))
}

/** Applies a JSON merge patch (RFC 7396): null removes a key, an object is merged, everything else replaces the value. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  const merged = new Map(isObject(target) ? Object.entries(target) : [])
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key)
    else merged.set(key, mergePatch(merged.get(key), value))
  }
  return Object.fromEntries(merged)
}
