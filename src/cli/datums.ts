/** Tasks with files, as people know them: by the names of their inputs, and by the node and the pod that has them. */

import type { DatumInput } from '../kernel/datum.ts'
import type { PawlApi } from '../protocol/api.ts'
import type { TaskView } from '../protocol/tasks/tasks.ts'
import { placeOf } from '../runners/names.ts'
import { isObject } from '../schema/check.ts'

export interface TaskWithWorker extends TaskView {
  /** Its inputs, by name and path; null: it has none. */
  readonly datum: string | null
  /** Who has it, or had it last. */
  readonly worker: string | null
  /** Of a worker in Kubernetes. */
  readonly node: string | null
  readonly pod: string | null
  /** How often somebody has had it, this time included. */
  readonly attempts: number
}

export async function withWorkers(api: PawlApi, tasks: readonly TaskView[]): Promise<TaskWithWorker[]> {
  return Promise.all(
    tasks.map(async task => {
      const attempts = await api.attempts(task.id)
      const worker = task.owner ?? attempts.at(-1)?.worker ?? null
      const pod = worker === null ? undefined : placeOf(worker)
      const where = { worker, node: pod?.node ?? null, pod: pod?.name ?? null }
      return { ...task, datum: datumOf(task.payload), ...where, attempts: attempts.length }
    }),
  )
}

/** What a task is given of files; others may have an `inputs` of their own in their payloads. */
export function inputsIn(payload: unknown): readonly DatumInput[] {
  const inputs = isObject(payload) ? payload.inputs : undefined
  return Array.isArray(inputs) && inputs.every(isInput) ? inputs : []
}

function isInput(value: unknown): value is DatumInput {
  return isObject(value) && [value.name, value.uri, value.path].every(text => typeof text === 'string')
}

/** `doc/a.pdf`, or `doc/a.pdf × model/`. */
function datumOf(payload: unknown): string | null {
  const inputs = inputsIn(payload)
  return inputs.length === 0 ? null : inputs.map(({ name, path }) => `${name}/${path}`).join(' × ')
}
