/** The responses of a Kubernetes 1.34 API server: the objects that it creates from requests, and its refusals. */
import { randomUUID } from 'node:crypto'

export interface KubeObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: Metadata
  readonly spec: Record<string, unknown>
  status: Record<string, unknown>
}

export interface Metadata {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  resourceVersion: string
  readonly labels?: Readonly<Record<string, string>>
  readonly [more: string]: unknown
}

export interface JobManifest {
  readonly metadata: { readonly name: string; readonly labels?: Record<string, string> }
  readonly spec: Record<string, unknown> & { readonly template: { metadata?: { labels?: object }; spec: object } }
}

/** RFC 3339 with seconds, as Kubernetes writes times. */
export const timestamp = () => `${new Date().toISOString().slice(0, 19)}Z`

export function newJob(manifest: JobManifest, namespace: string): KubeObject {
  const uid = randomUUID()
  const { name } = manifest.metadata
  const marks = {
    'batch.kubernetes.io/controller-uid': uid,
    'batch.kubernetes.io/job-name': name,
    'controller-uid': uid,
    'job-name': name,
  }
  const { template } = manifest.spec
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      ...manifest.metadata,
      namespace,
      uid,
      resourceVersion: '',
      generation: 1,
      creationTimestamp: timestamp(),
    },
    spec: {
      completionMode: 'NonIndexed',
      suspend: false,
      manualSelector: false,
      podReplacementPolicy: 'Failed',
      selector: { matchLabels: { 'batch.kubernetes.io/controller-uid': uid } },
      ...manifest.spec,
      template: {
        ...template,
        metadata: { ...template.metadata, labels: { ...template.metadata?.labels, ...marks } },
        spec: { dnsPolicy: 'ClusterFirst', schedulerName: 'default-scheduler', ...template.spec },
      },
    },
    status: {},
  }
}

/** A pod without a controller. */
export function lonePod(name: string, namespace: string, node: string): KubeObject {
  const started = timestamp()
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, uid: randomUUID(), resourceVersion: '', creationTimestamp: started, labels: {} },
    spec: { nodeName: node, containers: [{ name: 'worker', image: 'falconeri-worker' }] },
    status: { phase: 'Running', startTime: started, conditions: [{ type: 'Ready', status: 'True' }] },
  }
}

export function newPod(job: KubeObject, name: string, node: string): KubeObject {
  const { metadata, spec } = job.spec.template as { metadata: { labels: Record<string, string> }; spec: object }
  const { name: jobName, uid } = job.metadata
  const owner = { apiVersion: 'batch/v1', kind: 'Job', name: jobName, uid, controller: true, blockOwnerDeletion: true }
  const started = timestamp()
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      generateName: `${jobName}-`,
      namespace: job.metadata.namespace,
      uid: randomUUID(),
      resourceVersion: '',
      creationTimestamp: started,
      labels: metadata.labels,
      ownerReferences: [owner],
      finalizers: ['batch.kubernetes.io/job-tracking'],
    },
    spec: { ...spec, nodeName: node },
    status: {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'True', lastProbeTime: null, lastTransitionTime: started }],
      hostIP: '10.0.0.1',
      podIP: '10.1.0.1',
      startTime: started,
      containerStatuses: [
        {
          name: 'worker',
          image: 'worker',
          imageID: '',
          ready: true,
          restartCount: 0,
          started: true,
          state: { running: { startedAt: started } },
        },
      ],
      qosClass: 'BestEffort',
    },
  }
}

/** A pod that has ended. The state of its container is what the kubelet would report. */
export function endedPod(phase: 'Succeeded' | 'Failed', exitCode: number, reason: string): Record<string, unknown> {
  const at = timestamp()
  const terminated = { exitCode, reason, startedAt: at, finishedAt: at }
  const container = { name: 'worker', image: 'worker', imageID: '', ready: false, restartCount: 0 }
  return { phase, startTime: at, containerStatuses: [{ ...container, state: { terminated } }] }
}

/** The status that the kubelet sets on a pod that it evicted. */
export function evictedPod(): Record<string, unknown> {
  const message = 'The node was low on resource: memory.'
  return { phase: 'Failed', reason: 'Evicted', message, startTime: timestamp() }
}

export interface Status {
  readonly kind: 'Status'
  readonly apiVersion: 'v1'
  readonly metadata: Readonly<Record<string, string>>
  readonly status: 'Success' | 'Failure'
  readonly message?: string
  readonly reason?: string
  readonly details?: Readonly<Record<string, unknown>>
  readonly code?: number
}

export function failure(code: number, reason: string, message: string, more: Partial<Status> = {}): Status {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code, ...more }
}

export function success(details: Record<string, unknown>): Status {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details }
}
