/**
 * Falconeri's workers know neither leases nor epochs: the name of the pod stands for both. A claim is made as `node/pod`, like
 * those of Pawl's own workers in Kubernetes. So both names are kept with the lease, and a runner that sees the pod vanish
 * knows whose lease it was. A pod's reports count for the epoch of its own last attempt: the fence is the same for all.
 */
import { Problem } from '../../kernel/problem.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import { field } from '../../schema/check.ts'
import type { AskersEngine } from '../askers-engine.ts'
import { textField } from '../kit/fields.ts'

const longestWorker = 200
const longestPod = 150

const isName = (value: unknown): value is string =>
  typeof value === 'string' && !/[/\0]/.test(value) && value.isWellFormed()

export const podName = textField(
  field({ type: 'string' }, value =>
    isName(value) && value !== '' && value.length <= longestPod
      ? undefined
      : `be the name of a pod: at most ${longestPod} characters, without / and NUL`,
  ),
)

export const nodeName = textField(
  field({ type: 'string' }, value => (isName(value) ? undefined : 'be the name of a node')),
)

export const nonEmptyText = textField(
  field({ type: 'string' }, value =>
    typeof value === 'string' && value !== '' ? undefined : 'be a text that is not empty',
  ),
)

/** The node's name is for people only, so it is cut to the room that is left. */
export function workerOf(node: string, pod: string): string {
  return `${node.slice(0, longestWorker - pod.length - 1)}/${pod}`
}

export function podOf(worker: string | null): { node_name: string | null; pod_name: string | null } {
  if (worker === null) return { node_name: null, pod_name: null }
  const slash = worker.indexOf('/')
  return { node_name: slash < 0 ? null : worker.slice(0, slash), pod_name: worker.slice(slash + 1) }
}

/**
 * The epoch of this pod's last attempt at a datum. A pod that never held it is refused like one that has lost it. The task
 * itself names the pod that holds it now; only for other pods is the history read.
 */
export async function epochOf(engine: AskersEngine, datum: TaskView, pod: string): Promise<number> {
  if (isHeldBy(datum, pod)) return datum.epoch
  const mine = (await engine.attempts(datum.id)).findLast(({ worker }) => podOf(worker).pod_name === pod)
  if (mine === undefined) throw new Problem('LEASE_LOST', { id: datum.id, pod })
  return mine.epoch
}

/** Like `epochOf`, but only while the pod holds the datum. */
export function openEpochOf(datum: TaskView, pod: string): number {
  if (!isHeldBy(datum, pod)) throw new Problem('LEASE_LOST', { id: datum.id, pod })
  return datum.epoch
}

function isHeldBy({ state, owner }: TaskView, pod: string): boolean {
  return taskLifecycle.states[state].kind === 'held' && podOf(owner).pod_name === pod
}
