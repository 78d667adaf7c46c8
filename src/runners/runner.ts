/**
 * What Pawl asks of whatever starts workers. Every method may be called again with the same arguments, by any number of
 * servers at once, and comes to the same.
 */
import type { KubernetesPlan, RunPlan } from '../kernel/datum.ts'
import type { Problem } from '../kernel/problem.ts'

export interface StageToRun {
  readonly jobId: string
  readonly jobName: string
  readonly stageId: string
  readonly stageName: string
  /** Its own: whoever claims it runs in this stage's image. */
  readonly queue: string
  /** Pods at once. */
  readonly parallelism: number
  readonly run: RunPlan
  readonly runner: KubernetesPlan
  /** A stage that is retried has workers of its own in each round. */
  readonly round: number
}

/** The workers of one round of a stage; all that is needed to find them again. */
export interface StageRound {
  readonly stageId: string
  readonly round: number
  readonly namespace?: string
}

export interface Ensured {
  readonly stageId: string
  /** Why its workers could not be started; undefined: they are there, whoever started them. */
  readonly problem?: Problem
}

/** What the stage itself says is wrong: no try can help. Whatever else is refused, somebody may come to allow. */
export function isHopeless({ code, details }: Problem): boolean {
  return code === 'OPTION_INVALID' || (code === 'KUBERNETES_REFUSED' && [400, 422].includes(Number(details.status)))
}

export interface Runner {
  /** Starts the workers of stages that have none. One that cannot be started holds up no other. */
  ensure(stages: readonly StageToRun[]): Promise<readonly Ensured[]>

  /** Lets the workers of a round go. Those that are gone are as good. */
  stop(round: StageRound): Promise<void>

  /** What there is, in these namespaces; undefined is the runner's own. */
  look(namespaces: readonly (string | undefined)[]): Promise<Seen>

  /** Which pods of these names there are, in these namespaces. */
  findPods(namespaces: readonly string[], names: ReadonlySet<string>): Promise<FoundPods>
}

export interface LostWorker {
  readonly worker: string
  readonly reason: 'worker pod disappeared'
  /** The reason that Kubernetes gives: `Evicted`, `OOMKilled`, … Null if it gives none, or the pod does not exist. */
  readonly detail: string | null
}

/** Pods that were looked for by their names, whoever made them. */
export interface FoundPods {
  /** The namespaces of which every pod was listed. */
  readonly namespaces: readonly string[]
  readonly pods: readonly Omit<SeenPod, 'stageId'>[]
}

export interface Seen {
  /** The namespaces that were listed completely. Nothing is concluded about any other. */
  readonly namespaces: readonly string[]
  /** Those that could not be looked into, and why. */
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
  /** Of one that failed, in Kubernetes' words: `DeadlineExceeded`, `BackoffLimitExceeded`, …, and its sentence. */
  readonly reason: string | null
  readonly message: string | null
}

export interface SeenPod {
  readonly namespace: string
  readonly name: string
  /** Null: it has no place yet. */
  readonly node: string | null
  readonly stageId: string
  readonly phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown'
  /** Why it ended, if Kubernetes says: `Evicted`, `OOMKilled`, … */
  readonly reason: string | null
}
