/**
 * Its workers know neither leases nor epochs: a pod's name stands for both. A claim is made under `node/pod`, as Pawl's own
 * workers in Kubernetes call themselves, so that both are kept with the lease, and a runner that sees the pod vanish knows
 * whose it was. What a pod says of a datum counts under the epoch of its own last attempt: the fence is the same for all.
 */
import { Problem } from '../../kernel/problem.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import type { AskersEngine } from '../askers-engine.ts'
import type { Reads } from './read.ts'

const longestWorker = 200
const longestPod = 150

const isName = (value: unknown): value is string =>
  typeof value === 'string' && !/[/\0]/.test(value) && value.isWellFormed()

export const podName: Reads<string> = {
  is: (value): value is string => isName(value) && value !== '' && value.length <= longestPod,
  must: `be the name of a pod: no / and no NUL in it, and at most ${longestPod} characters`,
}

export const nodeName: Reads<string> = { is: isName, must: 'be the name of a node' }

/** Of the node, which is for people only, what there is room for. */
export function workerOf(node: string, pod: string): string {
  return `${node.slice(0, longestWorker - pod.length - 1)}/${pod}`
}

export function podOf(worker: string | null): { node_name: string | null; pod_name: string | null } {
  if (worker === null) return { node_name: null, pod_name: null }
  const slash = worker.indexOf('/')
  return { node_name: slash < 0 ? null : worker.slice(0, slash), pod_name: worker.slice(slash + 1) }
}

/**
 * The epoch of this pod's last attempt at a datum. One who never held it is refused as one who does not any more. Of the
 * pod that holds it now the task itself says it; only of others must the history be read.
 */
export async function epochOf(engine: AskersEngine, datum: TaskView, pod: string): Promise<number> {
  if (isHeldBy(datum, pod)) return datum.epoch
  const mine = (await engine.attempts(datum.id)).findLast(({ worker }) => podOf(worker).pod_name === pod)
  if (mine === undefined) throw new Problem('LEASE_LOST', { id: datum.id, pod })
  return mine.epoch
}

/** The same, while the attempt goes on. */
export function openEpochOf(datum: TaskView, pod: string): number {
  if (!isHeldBy(datum, pod)) throw new Problem('LEASE_LOST', { id: datum.id, pod })
  return datum.epoch
}

function isHeldBy({ state, owner }: TaskView, pod: string): boolean {
  return taskLifecycle.states[state].kind === 'held' && podOf(owner).pod_name === pod
}
