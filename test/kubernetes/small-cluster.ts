/**
 * The state of an API server and what acts on it: Jobs and pods with their versions, the controller that keeps as many
 * pods as a Job asks for, and changes that a test makes behind everyone's back.
 */
import {
  endedPod,
  evictedPod,
  type JobManifest,
  type KubeObject,
  lonePod,
  newJob,
  newPod,
  timestamp,
} from './shapes.ts'

export type Resource = 'jobs' | 'pods'

export interface Change {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly resource: Resource
  readonly object: KubeObject
}

export class SmallCluster {
  readonly changes: Change[] = []
  #version = 1000
  #pods = 0
  readonly #objects = { jobs: new Map<string, KubeObject>(), pods: new Map<string, KubeObject>() }
  readonly #watchers = new Set<(change: Change) => void>()

  get version(): string {
    return String(this.#version)
  }

  /** Sorted by key, as etcd does. */
  list(resource: Resource, namespace: string): KubeObject[] {
    const all = [...this.#objects[resource].values()].filter(({ metadata }) => metadata.namespace === namespace)
    return all.sort((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1))
  }

  find(resource: Resource, namespace: string, name: string): KubeObject | undefined {
    return this.#objects[resource].get(`${namespace}/${name}`)
  }

  watch(tell: (change: Change) => void): () => void {
    this.#watchers.add(tell)
    return () => this.#watchers.delete(tell)
  }

  createJob(manifest: JobManifest, namespace: string): KubeObject {
    const job = newJob(manifest, namespace)
    this.#put('ADDED', 'jobs', job)
    const created = structuredClone(job)
    job.status = { startTime: timestamp(), uncountedTerminatedPods: {} }
    this.#fill(job)
    return created
  }

  /** A pod without a Job, as somebody else may have started it. */
  addPod(name: string, namespace: string, node: string): KubeObject {
    const pod = lonePod(name, namespace, node)
    this.#put('ADDED', 'pods', pod)
    return pod
  }

  /** Deletes its pods too, unless they are to be orphaned. */
  removeJob(job: KubeObject, { orphans }: { orphans: boolean } = { orphans: false }): void {
    const pods = this.#podsOf(job)
    this.#remove('jobs', job)
    if (!orphans) for (const pod of pods) this.#remove('pods', pod)
  }

  vanishPod(pod: KubeObject): void {
    this.#remove('pods', pod)
    this.#refill(pod)
  }

  evictPod(pod: KubeObject): void {
    this.#end(pod, evictedPod())
  }

  /** Its worker ran out of memory and was killed. */
  killPod(pod: KubeObject): void {
    this.#end(pod, endedPod('Failed', 137, 'OOMKilled'))
  }

  /** Its worker drained and exited normally, as on a node that is drained. */
  drainPod(pod: KubeObject): void {
    this.#end(pod, endedPod('Succeeded', 0, 'Completed'))
  }

  /** Like the Job controller: the pods are deleted, and the Job stays, with a reason. */
  failJob(job: KubeObject, reason: string, message: string): void {
    const at = timestamp()
    for (const pod of this.#podsOf(job)) this.#remove('pods', pod)
    const target = { type: 'FailureTarget', status: 'True', lastProbeTime: at, lastTransitionTime: at, reason, message }
    job.status = { ...job.status, active: 0, failed: 1, conditions: [target, { ...target, type: 'Failed' }] }
    this.#put('MODIFIED', 'jobs', job)
  }

  #end(pod: KubeObject, status: Record<string, unknown>): void {
    pod.status = status
    this.#put('MODIFIED', 'pods', pod)
    this.#refill(pod)
  }

  #refill(pod: KubeObject): void {
    const job = this.find('jobs', pod.metadata.namespace, ownerOf(pod)?.name ?? '')
    if (job !== undefined) this.#fill(job)
  }

  #fill(job: KubeObject): void {
    const { parallelism, completions } = job.spec as { parallelism: number; completions?: number }
    const pods = this.#podsOf(job)
    const count = (phase: string) => pods.filter(({ status }) => status.phase === phase).length
    const [running, succeeded, failed] = [count('Running'), count('Succeeded'), count('Failed')]
    // Without completions, the first pod that succeeds completes the Job.
    const wanted = completions === undefined ? (succeeded > 0 ? 0 : parallelism) : completions - succeeded
    const more = Math.max(0, Math.min(parallelism, wanted) - running)
    for (let made = 0; made < more; made += 1) {
      const suffix = (this.#pods++).toString(36).padStart(5, 'x')
      this.#put('ADDED', 'pods', newPod(job, `${job.metadata.name}-${suffix}`, `node-${1 + (this.#pods % 3)}`))
    }
    job.status = { ...job.status, active: running + more, ready: running + more, succeeded, failed }
    this.#put('MODIFIED', 'jobs', job)
  }

  #podsOf({ metadata }: KubeObject): KubeObject[] {
    const owns = (pod: KubeObject) => ownerOf(pod)?.uid === metadata.uid
    return this.list('pods', metadata.namespace).filter(owns)
  }

  #put(type: Change['type'], resource: Resource, object: KubeObject): void {
    const { namespace, name } = object.metadata
    object.metadata.resourceVersion = String(++this.#version)
    this.#objects[resource].set(`${namespace}/${name}`, object)
    this.#tell({ type, resource, object: structuredClone(object) })
  }

  #remove(resource: Resource, object: KubeObject): void {
    const { namespace, name } = object.metadata
    this.#objects[resource].delete(`${namespace}/${name}`)
    object.metadata.resourceVersion = String(++this.#version)
    this.#tell({ type: 'DELETED', resource, object: structuredClone(object) })
  }

  #tell(change: Change): void {
    this.changes.push(change)
    for (const tell of this.#watchers) tell(change)
  }
}

function ownerOf({ metadata }: KubeObject): { readonly name: string; readonly uid: string } | undefined {
  return (metadata.ownerReferences as { name: string; uid: string }[] | undefined)?.[0]
}
