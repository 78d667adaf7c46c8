import type { V1Job } from '@kubernetes/client-node'
import { type KubernetesPlan, ownQueueOf } from '../kernel/datum.ts'
import type { JobPlan } from '../kernel/plan.ts'
import { manifestOf } from './manifest.ts'
import type { StageToRun } from './runner.ts'
import { type KubernetesSettings, settleKubernetes } from './settings.ts'

/** The Jobs for the stages of a job, rendered without a cluster. */
export function manifestsFor(plan: JobPlan, given: KubernetesSettings): V1Job[] {
  const settings = settleKubernetes(given)
  return stagesToRun(plan).map(stage => manifestOf(stage, settings))
}

/**
 * The stages of a job that would run in Kubernetes, in their first round. A plan has no ids yet, so they are numbered.
 */
export function stagesToRun(plan: JobPlan): StageToRun[] {
  return plan.stages.flatMap((stage, index) => {
    const { run, runner } = stage.files ?? { run: null, runner: null }
    if (run === null || runner?.kind !== 'kubernetes') return []
    const stageId = countingId(index + 1)
    const { name: stageName, queue, parallelism } = stage
    return [
      {
        jobId: countingId(0),
        jobName: plan.name,
        stageId,
        stageName,
        queue: queue ?? ownQueueOf(stageId),
        parallelism: podsOf(runner, parallelism),
        run,
        runner,
        round: 1,
      },
    ]
  })
}

/** As set by the runner of the stage, else its parallelism. */
export function podsOf({ pods }: KubernetesPlan, parallelism: number | null): number {
  return pods ?? parallelism ?? 1
}

function countingId(n: number): string {
  return `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`
}
