/**
 * Changes to jobs, stages and tasks that do not move them.
 *
 * Each change is an event (`from` = `to`) with the actor and the previous values. People keep ownership and agreements
 * in metadata, and without an event an edit could not be distinguished from the submission. A patch that changes
 * nothing writes nothing.
 */
import { isDeepStrictEqual } from 'node:util'
import { Problem } from '../../kernel/problem.ts'
import { controlFields } from '../../protocol/call-options.ts'
import type { JobView, StageView } from '../../protocol/jobs/jobs.ts'
import {
  type JobPatch,
  jobPatchFields,
  type MetadataPatch,
  metadataFields,
  type TaskView,
} from '../../protocol/tasks/tasks.ts'
import { isObject } from '../../schema/check.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { bytesOfHistory, getStage } from '../../store/jobs/read-jobs.ts'
import { getTask } from '../../store/tasks/read-tasks.ts'
import { lockTasks, writeTaskUpdates } from '../../store/tasks/task-updates.ts'
import { checkedJson, checkId, checkOptions, type Fields } from '../check.ts'
import type { Context } from '../context.ts'
import { changeJob, changePriority, requireRoomInJob } from '../jobs/job-control.ts'
import { changeStage, smallBytes } from '../jobs/stage-control.ts'
import { transact } from '../unit-of-work.ts'
import { type ControlCall, reasonOf } from './control.ts'
import { toTaskView } from './task-view.ts'

/** Limited, because the event with the patch is rewritten with every later event of its row. */
export const maxPatchBytes = 65_536

export async function patchJob(
  context: Context,
  id: string,
  patch: JobPatch,
  call: ControlCall = {},
): Promise<JobView> {
  check(context, patch, jobPatchFields, call)
  return changeJob(context, id, call, ['patch', patch], async (locked, tx) => {
    const { job } = locked
    if (patch.priority !== undefined && patch.priority !== job.priority)
      await changePriority(locked, tx, patch.priority)
    const edit = metadataEdit(context, job.metadata, patch, call)
    if (edit === undefined) return
    const { metadata } = edit
    const payload = await fitIntoHistory(tx, 'job', job.id, edit.payload)
    locked.moveJob({ to: job.state, type: 'job.metadata_changed', cause: 'metadata', payload }, { metadata })
  })
}

export async function patchStage(
  context: Context,
  id: string,
  patch: MetadataPatch,
  call: ControlCall = {},
): Promise<StageView> {
  check(context, patch, metadataFields, call)
  return changeStage(context, id, call, ['patch', patch], async (locked, stage, tx) => {
    const kept = await getStage(tx, stage.id)
    const edit = metadataEdit(context, kept!.metadata, patch, call)
    if (edit === undefined) return
    const { metadata } = edit
    const payload = await fitIntoHistory(tx, 'stage', stage.id, edit.payload)
    const more = JSON.stringify(metadata).length - JSON.stringify(kept!.metadata ?? {}).length
    if (more > smallBytes) await requireRoomInJob(tx, stage.jobId, more)
    const step = { to: stage.state, type: 'stage.metadata_changed', cause: 'metadata', payload }
    locked.moveStage(stage, step, { metadata })
  })
}

/** Does not lock the job: the patch does not affect the job, and settles need not wait. */
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
    const edit = metadataEdit(context, task.metadata, patch, call)
    if (edit !== undefined) {
      const { metadata } = edit
      const payload = await fitIntoHistory(tx, 'task', taskId, edit.payload)
      const step = { to: task.state, type: 'task.metadata_changed', cause: 'metadata', payload }
      const ruling = { task, steps: [step], patch: { metadata, edit: true as const } }
      await writeTaskUpdates(tx, [ruling], call.actor ?? 'operator')
    }
    return toTaskView((await getTask(tx, taskId))!)
  })
}

/** Events are kept in the row, so every later event rewrites the earlier ones. */
export const maxHistoryBytes = 4 * 2 ** 20
/** Tens of thousands of short events later. */
const longestHistoryBytes = 2 * maxHistoryBytes

/** Returns the payload of the event. If the history is long, it says only that the metadata was changed, not how. */
async function fitIntoHistory(
  tx: Sql,
  entity: 'job' | 'stage' | 'task',
  id: string,
  { patch, before, ...rest }: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  const bytes = await bytesOfHistory(tx, entity, id)
  if (bytes > longestHistoryBytes) {
    throw new Problem('PAYLOAD_TOO_LARGE', { at: 'history', bytes, limit: longestHistoryBytes })
  }
  return bytes > maxHistoryBytes ? rest : { patch, before, ...rest }
}

function check(context: Context, patch: MetadataPatch, fields: Fields, call: ControlCall): void {
  checkOptions(call, controlFields, 'patch')
  checkOptions(patch, fields, 'patch')
  const limit = Math.min(maxPatchBytes, context.maxPayloadBytes)
  if (patch.metadata !== undefined) checkedJson(patch.metadata, limit, 'metadata')
}

/** Returns the patched metadata and the payload of the event; undefined: nothing changes. */
function metadataEdit(
  { maxPayloadBytes }: Context,
  kept: Record<string, unknown> | null,
  patch: MetadataPatch,
  call: ControlCall,
): { metadata: unknown; payload: Record<string, unknown> } | undefined {
  if (patch.metadata === undefined) return undefined
  const before = kept ?? {}
  // Converted to JSON first: values such as undefined or a Date must not be merged as they are.
  const patched: unknown = JSON.parse(JSON.stringify(patch.metadata))
  const replaces = patch.replace === true
  const merged = (replaces ? patched : mergePatch(before, patched)) ?? {}
  const metadata: unknown = JSON.parse(checkedJson(merged, maxPayloadBytes, 'metadata'))
  if (isDeepStrictEqual(metadata, before)) return undefined
  const touched = patched === null || replaces ? before : pick(before, Object.keys(patched as object))
  return { metadata, payload: { patch: patched, ...(replaces && { replaces }), before: touched, ...reasonOf(call) } }
}

/** Returns the values of these keys, null where a key is missing. */
function pick(from: Record<string, unknown>, keys: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(keys.map(key => [key, Object.hasOwn(from, key) ? from[key] : null]))
}

/**
 * Applies a JSON merge patch (RFC 7396): null removes a key, objects are merged, any other value replaces the old one.
 */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  const merged = new Map(isObject(target) ? Object.entries(target) : [])
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key)
    else merged.set(key, mergePatch(merged.get(key), value))
  }
  return Object.fromEntries(merged)
}
