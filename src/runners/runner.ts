/**
 * Starts and watches the workers of stages. Every method is idempotent, and any number of servers may call it at once.
 */
import type { KubernetesPlan, RunPlan } from '../kernel/datum.ts'
import type { Problem } from '../kernel/problem.ts'

export interface StageToRun {
  readonly jobId: string
  readonly jobName: string
  readonly stageId: string
  readonly stageName: string
  /** A queue of the stage's own, so that its tasks run in its image. */
  readonly queue: string
  /** Pods at once. */
  readonly parallelism: number
  readonly run: RunPlan
  readonly runner: KubernetesPlan
  /** A retried stage gets new workers in each round. */
  readonly round: number
}

/** Identifies the workers of one round of a stage. */
export interface StageRound {
  readonly stageId: string
  readonly round: number
  readonly namespace?: string
}

export interface Ensured {
  readonly stageId: string
  /** Why the workers could not be started; undefined if they exist, whoever started them. */
  readonly problem?: Problem
}

/** The stage itself is invalid, so retries cannot help. Any other refusal may be lifted. */
export function isHopeless({ code, details }: Problem): boolean {
  return code === 'OPTION_INVALID' || (code === 'KUBERNETES_REFUSED' && [400, 422].includes(Number(details.status)))
}

export interface Runner {
  /** Starts the workers of stages that have none. A stage that fails to start does not hold up the others. */
  ensure(stages: readonly StageToRun[]): Promise<readonly Ensured[]>

  /** Stops the workers of a round, if there are any left. */
  stop(round: StageRound): Promise<void>

  /** Lists Jobs and pods in these namespaces; undefined stands for the runner's own. */
  inspect(namespaces: readonly (string | undefined)[]): Promise<Seen>

  /** Finds pods by name in these namespaces. */
  findPods(namespaces: readonly string[], names: ReadonlySet<string>): Promise<FoundPods>
}

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
