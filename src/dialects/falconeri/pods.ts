/**
 * Its workers know neither leases nor epochs: a pod's name stands for both. A claim is made under `node/pod`, as Pawl's own
 * workers in Kubernetes call themselves, so that both are kept with the lease, and a runner that sees the pod vanish knows
 * whose it was. What a pod says of a datum counts under the epoch of its own last attempt: the fence is the same for all.
 */
import type { Pawl } from '../../engine/engine.ts'
import { Problem } from '../../kernel/problem.ts'
import type { AttemptView } from '../../protocol/tasks.ts'
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

/** The last attempt of this pod at a datum. One who never held it is refused as one who does not any more. */
export async function attemptOf(engine: Pawl, datumId: string, pod: string): Promise<AttemptView> {
  const attempts = await engine.attempts(datumId)
  const mine = attempts.findLast(({ worker }) => podOf(worker).pod_name === pod)
  if (mine === undefined) throw new Problem('LEASE_LOST', { id: datumId, pod })
  return mine
}

/** The same, while it goes on. */
export async function openAttemptOf(engine: Pawl, datumId: string, pod: string): Promise<AttemptView> {
  const attempt = await attemptOf(engine, datumId, pod)
  if (attempt.endedAt !== null) throw new Problem('LEASE_LOST', { id: datumId, pod })
  return attempt
}
