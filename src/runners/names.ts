/** How what Pawl makes in a cluster is called, and how it is found again by its name. */

/**
 * The name of a Job follows from the stage and the round, so that of two servers that make it at once, or of one that
 * makes it again after a lost answer, the second is told that it is there. It leaves room for what Kubernetes appends to
 * the names of its pods.
 */
export function jobNameOf({ stageId, round }: { readonly stageId: string; readonly round: number }): string {
  return `pawl-${stageId.replaceAll('-', '').toLowerCase()}-${round}`
}

/** What a worker in a pod is called: Kubernetes puts in the names as it starts the container. */
export const workerNameInPod = '$(NODE_NAME)/$(POD_NAME)'

export function workerNameOf({ node, name }: { readonly node: string; readonly name: string }): string {
  return `${node}/${name}`
}

const jobName = /^pawl-[0-9a-f]{32}-[0-9]{1,9}$/

/** Whether a Job of ours may be called so. */
export function isJobName(name: string): boolean {
  return jobName.test(name)
}

export interface PodName {
  readonly node: string
  readonly name: string
  /** The Job that made it. */
  readonly job: string
  /** Of that Job: not necessarily the stage of the task that its worker holds. */
  readonly stageId: string
}

/** The pod of a worker; undefined: no pod of ours was ever called so, it is a worker that somebody started by hand. */
export function podOf(worker: string): PodName | undefined {
  const { node, name, job, hex } =
    /^(?<node>[^/]+)\/(?<name>(?<job>pawl-(?<hex>[0-9a-f]{32})-[0-9]{1,9})-[a-z0-9]+)$/.exec(worker)?.groups ?? {}
  if (node === undefined || name === undefined || job === undefined || hex === undefined) return undefined
  return { node, name, job, stageId: hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-') }
}

/** Node and pod of whoever calls itself so: workers of ours in Kubernetes, and pods that another system's words name. */
export function placeOf(worker: string): { readonly node: string; readonly name: string } | undefined {
  const { node, name } = /^(?<node>[^/]+)\/(?<name>[^/]+)$/.exec(worker)?.groups ?? {}
  return node === undefined || name === undefined ? undefined : { node, name }
}

/** The pod of a worker that Pawl did not start, if its name may be one: `node/pod`, or `/pod` where the node is unknown. */
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
  /** The names of the job and the stage, as far as a label can hold them: `kubectl get jobs -L pawl/job,pawl/stage`. */
  job: 'pawl/job',
  stage: 'pawl/stage',
} as const

/** Finds what one installation of Pawl made, and nothing of another in the same namespace. */
export function selectorOf(instance: string): string {
  return `${labels.managedBy}=pawl,${labels.instance}=${instance}`
}

/** The nearest text that a label may hold. */
export function labelValue(text: string): string {
  return text
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .slice(0, 63)
    .replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, '')
}
