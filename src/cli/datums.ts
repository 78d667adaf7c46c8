/** Tasks with the names of their input files, and with the node and pod of their worker. */

import type { DatumInput } from '../kernel/datum.ts'
import type { PawlApi } from '../protocol/api.ts'
import type { TaskView } from '../protocol/tasks/tasks.ts'
import { placeOf } from '../runners/names.ts'
import { isObject } from '../schema/check.ts'

export interface TaskWithWorker extends TaskView {
  /** The names and paths of its inputs; null if it has none. */
  readonly datum: string | null
  /** The current or last worker. */
  readonly worker: string | null
  /** Set if the worker runs in Kubernetes. */
  readonly node: string | null
  readonly pod: string | null
  /** The number of attempts, including the current one. */
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

/** The input files of a task. Payloads of other tasks may have a different `inputs`, which is ignored. */
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
