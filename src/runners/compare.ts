/**
 * Compares the expected state of a cluster with the actual one. Pure: it returns findings, and the caller acts on them.
 *
 * Its assumptions: anything may vanish at any time; the API may be unreachable, or answer for some namespaces only; any
 * number of servers compare at once, and one may act late on its findings. So:
 * - A namespace that was not listed completely is unknown, and nothing follows from it. Leases still run out.
 * - `stages` and `workers` are read *before* the cluster is listed. Anything that starts after that is in neither, and
 *   everything in them that is alive is listed. Otherwise a pod that starts in between would seem to have vanished.
 * - Findings are applied under the usual guards: a stage fails only while it is running in that round, and a lease ends
 *   only under the epoch that was read. A finding that is applied twice takes effect once.
 */

import type { Problem } from '../kernel/problem.ts'
import { jobNameOf, podOf } from './names.ts'

export interface LostWorker {
  readonly worker: string
  readonly reason: 'worker pod disappeared'
  /** The reason given by Kubernetes: `Evicted`, `OOMKilled`, … Null if it gives none, or the pod does not exist. */
  readonly detail: string | null
}

/** Pods found by name, whoever created them. */
export interface FoundPods {
  /** The namespaces that were listed completely. */
  readonly namespaces: readonly string[]
  readonly pods: readonly Omit<SeenPod, 'stageId'>[]
}

export interface Seen {
  /** The namespaces that were listed completely. Nothing is concluded about any other. */
  readonly namespaces: readonly string[]
  /** Namespaces that could not be listed, and why. */
  readonly blind: readonly { readonly namespace: string; readonly problem: Problem }[]
  readonly jobs: readonly SeenJob[]
  readonly pods: readonly SeenPod[]
}

export interface SeenJob {
  readonly namespace: string
  readonly name: string
  readonly stageId: string
  readonly round: number
  readonly state: 'active' | 'complete' | 'failed'
  /** The reason given by Kubernetes for a failure: `DeadlineExceeded`, `BackoffLimitExceeded`, …, and its message. */
  readonly reason: string | null
  readonly message: string | null
}

export interface SeenPod {
  readonly namespace: string
  readonly name: string
  /** Null if it is not scheduled yet. */
  readonly node: string | null
  readonly stageId: string
  readonly phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown'
  /** Why it ended, if Kubernetes says so: `Evicted`, `OOMKilled`, … */
  readonly reason: string | null
}

export interface RunningStage {
  readonly stageId: string
  readonly round: number
  readonly namespace: string
  /** When the Job of this round was created; null if it has not been, so that it cannot have vanished. */
  readonly createdAt: Date | null
  /** Since when the Job has been missing; null if it is there or was never checked. */
  readonly missingSince: Date | null
}

export interface HeldWorker {
  readonly worker: string
  readonly namespace: string
}

export interface Findings {
  /** Stages whose Job was created but is missing. Record the time, unless it is recorded already. */
  readonly missing: readonly string[]
  /** Stages whose Job has reappeared. Clear the recorded time. */
  readonly back: readonly string[]
  readonly vanishedFor15Min: readonly string[]
  /** Jobs that Kubernetes ended while the stage was running, so that nobody works on it any more. */
  readonly ended: readonly { readonly stageId: string; readonly why: string }[]
  readonly lostWorkers: readonly LostWorker[]
  /**
   * Active Jobs whose rounds were not running when the stages were read. Check again before stopping one, because its
   * round may have started since. Ended Jobs stay for inspection, for their `ttlSeconds`.
   */
  readonly strays: readonly SeenJob[]
}

export const vanishedReason = 'its Kubernetes job vanished'
const patienceMs = 15 * 60_000

interface Comparison {
  readonly now: Date
  readonly stages: readonly RunningStage[]
  readonly workers: readonly HeldWorker[]
  readonly seen: Seen
}

export function compare({ now, stages, workers, seen }: Comparison): Findings {
  const jobs = new Map(seen.jobs.map(job => [keyOf(job.namespace, job.name), job]))
  const jobOf = (stage: RunningStage) => jobs.get(keyOf(stage.namespace, jobNameOf(stage)))
  const known = stages.filter(({ namespace }) => seen.namespaces.includes(namespace))
  const gone = known.filter(stage => stage.createdAt !== null && jobOf(stage) === undefined)
  const wanted = new Set(stages.map(stage => keyOf(stage.namespace, jobNameOf(stage))))
  return {
    missing: idsOf(gone),
    back: idsOf(known.filter(stage => stage.missingSince !== null && jobOf(stage) !== undefined)),
    vanishedFor15Min: idsOf(gone.filter(stage => missingForMs(stage, now) >= patienceMs)),
    ended: known.flatMap(stage => {
      const why = endOf(jobOf(stage))
      return why === undefined ? [] : [{ stageId: stage.stageId, why }]
    }),
    lostWorkers: lostAmong(workers, seen),
    strays: seen.jobs.filter(job => job.state === 'active' && !wanted.has(keyOf(job.namespace, job.name))),
  }
}

/** Counted from the first time it was missing in this round. Missing time of an earlier round does not count. */
function missingForMs({ missingSince, createdAt }: RunningStage, now: Date): number {
  if (missingSince === null || createdAt === null) return 0
  return now.getTime() - Math.max(missingSince.getTime(), createdAt.getTime())
}

const reasons: Readonly<Record<string, string>> = {
  DeadlineExceeded: 'its Kubernetes job ran longer than activeDeadlineSeconds',
  BackoffLimitExceeded: 'too many pods of its Kubernetes job failed',
}

function endOf(job: SeenJob | undefined): string | undefined {
  if (job === undefined || job.state === 'active') return undefined
  if (job.state === 'complete') return 'its Kubernetes job completed before the stage ended'
  const why = [job.reason, job.message].filter(Boolean).join(': ')
  return `${reasons[job.reason ?? ''] ?? 'its Kubernetes job failed'}${why === '' ? '' : ` (${why})`}`
}

/** Not `Unknown`: Kubernetes has lost contact with such a pod, but it may still be running, so its leases decide. */
const over: readonly SeenPod['phase'][] = ['Succeeded', 'Failed']

function lostAmong(workers: readonly HeldWorker[], seen: Seen): LostWorker[] {
  const pods = new Map(seen.pods.map(pod => [keyOf(pod.namespace, pod.name), pod]))
  return workers.flatMap(({ worker, namespace }) => {
    const named = podOf(worker)
    if (named === undefined || !seen.namespaces.includes(namespace)) return []
    const pod = pods.get(keyOf(namespace, named.name))
    if (pod !== undefined && !over.includes(pod.phase)) return []
    return [{ worker, reason: 'worker pod disappeared' as const, detail: pod?.reason ?? null }]
  })
}

/** A worker in a pod that Pawl did not start. */
export interface OtherWorker {
  readonly worker: string
  /** Null if the worker does not know its node. */
  readonly node: string | null
  readonly name: string
  /** The namespace in which its pod was last seen; null if never. */
  readonly namespace: string | null
}

/** Finds the workers that are lost, and the namespaces in which the pods of the others were seen. */
export function lostOthers(workers: readonly OtherWorker[], { namespaces, pods }: FoundPods) {
  const lost: LostWorker[] = []
  const alive: [string, string][] = []
  for (const { worker, node, name, namespace } of workers) {
    // A pod with that name on another node is a different one, because names are reused.
    const found = pods.filter(
      pod =>
        pod.name === name &&
        (node === null || pod.node === node) &&
        (namespace === null || pod.namespace === namespace),
    )
    // Several namespaces may have a pod with that name. The worker may be in any of them that is alive.
    const pod = found.find(({ phase }) => !over.includes(phase)) ?? found[0]
    const isGone = pod === undefined && namespace !== null && namespaces.includes(namespace)
    if (isGone || (pod !== undefined && over.includes(pod.phase))) {
      lost.push({ worker, reason: 'worker pod disappeared', detail: pod?.reason ?? null })
    } else if (pod !== undefined) alive.push([worker, pod.namespace])
  }
  return { lost, alive }
}

function keyOf(namespace: string, name: string): string {
  return `${namespace}/${name}`
}

function idsOf(stages: readonly RunningStage[]): string[] {
  return stages.map(({ stageId }) => stageId)
}
