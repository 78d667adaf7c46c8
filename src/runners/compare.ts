/**
 * Compares what should run with what was seen to. It is pure, and says what follows; whoever calls it does it.
 *
 * Its assumptions: anything may vanish at any time; the API may be out of reach, or answer for some namespaces only; any
 * number of servers compare at once, and one may come late with what it found. So:
 * - What was not seen whole is unknown, and nothing follows from it: leases still run out.
 * - `stages` and `workers` were read *before* the look. What began after they were read is in neither, and what was in
 *   them and lived is seen: otherwise a pod that was born between two reads would be taken for one that vanished.
 * - What follows is done under the guards that hold anyway: a stage is failed only while it runs in that round, a lease
 *   is ended only under the epoch that was read. Found twice, it is done once.
 */
import { jobNameOf, podOf } from './names.ts'
import type { FoundPods, LostWorker, Seen, SeenJob, SeenPod } from './runner.ts'

export interface RunningStage {
  readonly stageId: string
  readonly round: number
  readonly namespace: string
  /** When the Job of this round was made; null: not yet, so that it cannot have vanished. */
  readonly createdAt: Date | null
  /** Since when the Job has been found missing; null: it was there, or nobody has looked. */
  readonly missingSince: Date | null
}

export interface HeldWorker {
  readonly worker: string
  readonly namespace: string
}

export interface Findings {
  /** Made, and not there: since when is to be written down, where it is not yet. */
  readonly missing: readonly string[]
  /** There again: that it was missing is to be forgotten. */
  readonly back: readonly string[]
  readonly vanishedFor15Min: readonly string[]
  /** Ended by Kubernetes while the stage runs: nobody works on it any more. */
  readonly ended: readonly { readonly stageId: string; readonly why: string }[]
  readonly lostWorkers: readonly LostWorker[]
  /**
   * Jobs that go on though their rounds were not running when the stages were read. Look again before one is stopped: it
   * may have begun since. One that has ended is left to be looked at, for its `ttlSeconds`.
   */
  readonly strays: readonly SeenJob[]
}

export const vanishedReason = 'its Kubernetes job vanished'
const patienceMs = 15 * 60_000

export interface Comparison {
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

/** From when it was first found missing; in an earlier round it may have been missing too, which does not count. */
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
  if (job.state === 'complete') return 'its Kubernetes job was completed before it'
  const said = [job.reason, job.message].filter(Boolean).join(': ')
  return `${reasons[job.reason ?? ''] ?? 'its Kubernetes job failed'}${said === '' ? '' : ` (${said})`}`
}

/** A pod that Kubernetes lost sight of (`Unknown`) may go on working: its leases decide. */
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
  /** Null: the worker does not know it. */
  readonly node: string | null
  readonly name: string
  /** Where its pod was seen before; null: it never was. */
  readonly namespace: string | null
}

/** Which of these workers are lost, and where the pods of the others were seen. */
export function lostOthers(
  workers: readonly OtherWorker[],
  { namespaces, pods }: FoundPods,
): { readonly lost: LostWorker[]; readonly alive: (readonly [worker: string, namespace: string])[] } {
  const lost: LostWorker[] = []
  const alive: [string, string][] = []
  for (const { worker, node, name, namespace } of workers) {
    // A pod of that name on another node is another pod: names are used again.
    const found = pods.filter(
      pod =>
        pod.name === name &&
        (node === null || pod.node === node) &&
        (namespace === null || pod.namespace === namespace),
    )
    // Pods of one name may be in several namespaces: the worker may be in any that lives.
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
