/** Names and labels of the objects that Pawl creates in a cluster. */

/**
 * The name of a Job is derived from stage and round. So if two servers create it at once, or one repeats the request
 * after a lost response, the second is told that it exists. The name leaves room for the suffix that Kubernetes adds
 * for pods.
 */
export function jobNameOf({ stageId, round }: { readonly stageId: string; readonly round: number }): string {
  return `pawl-${stageId.replaceAll('-', '').toLowerCase()}-${round}`
}

/** The name of a worker in a pod. Kubernetes inserts the values when it starts the container. */
export const workerNameInPod = '$(NODE_NAME)/$(POD_NAME)'

/** Whether this can be the name of a Job created by Pawl. */
export function isJobName(name: string): boolean {
  return /^pawl-[0-9a-f]{32}-[0-9]{1,9}$/.test(name)
}

/**
 * The pod of a worker, the Job that created it, and the stage of that Job, which need not be the stage of the task that
 * the worker holds. Undefined if the name is not that of a pod created by Pawl.
 */
export function podOf(worker: string) {
  const [, node, name, job, hex] = /^([^/]+)\/((pawl-([0-9a-f]{32})-[0-9]{1,9})-[a-z0-9]+)$/.exec(worker) ?? []
  if (node === undefined || name === undefined || job === undefined || hex === undefined) return undefined
  return { node, name, job, stageId: hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-') }
}

/** Node and pod in a name of the form `node/pod`, for workers of Pawl in Kubernetes and for names used by dialects. */
export function placeOf(worker: string): { readonly node: string; readonly name: string } | undefined {
  const { node, name } = /^(?<node>[^/]+)\/(?<name>[^/]+)$/.exec(worker)?.groups ?? {}
  return node === undefined || name === undefined ? undefined : { node, name }
}

/**
 * The pod of a worker that Pawl did not start, if its name may be one: `node/pod`, or `/pod` if the node is unknown.
 */
export function otherPodOf(worker: string): { readonly node: string | null; readonly name: string } | undefined {
  if (podOf(worker) !== undefined) return undefined
  const { node, name } = /^(?<node>[^/]*)\/(?<name>[a-z0-9]([-a-z0-9.]*[a-z0-9])?)$/.exec(worker)?.groups ?? {}
  return name === undefined ? undefined : { node: node || null, name }
}

export const labels = {
  name: 'app.kubernetes.io/name',
  instance: 'app.kubernetes.io/instance',
  component: 'app.kubernetes.io/component',
  managedBy: 'app.kubernetes.io/managed-by',
  jobId: 'pawl/job-id',
  stageId: 'pawl/stage-id',
  round: 'pawl/round',
  /** The names of the job and the stage, as far as labels can hold them: `kubectl get jobs -L pawl/job,pawl/stage`. */
  job: 'pawl/job',
  stage: 'pawl/stage',
} as const

/** Selects the objects of one installation of Pawl, and not those of another one in the same namespace. */
export function selectorOf(instance: string): string {
  return `${labels.managedBy}=pawl,${labels.instance}=${instance}`
}

/** Converts text to a valid label value. */
export function labelValue(text: string): string {
  return text
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .slice(0, 63)
    .replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, '')
}
