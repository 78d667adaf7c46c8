/** Renders manifests without a cluster: of the stages of a job, and of Pawl itself. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { V1Job } from '@kubernetes/client-node'
import { parse, parseAllDocuments, stringify } from 'yaml'
import { ownQueueOf } from '../kernel/datum.ts'
import type { JobPlan } from '../kernel/plan.ts'
import { manifestOf, podsOf, type StageToRun } from './manifest.ts'
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

function countingId(n: number): string {
  return `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`
}

/** The manifests of deploy/, unchanged, as `kubectl kustomize deploy` would render them. */
export function serverManifests(): { readonly text: string; readonly items: readonly object[] } {
  const text = resourcesOf(findDeploy(import.meta.dirname))
    .map(file => readFileSync(file, 'utf8'))
    .join('---\n')
  return { text, items: parseAllDocuments(text).map(document => document.toJS() as object) }
}

/** The files of a kustomization. A resource may be a folder with a kustomization of its own. */
function resourcesOf(folder: string): string[] {
  const { resources } = parse(readFileSync(join(folder, 'kustomization.yaml'), 'utf8')) as { resources: string[] }
  return resources.flatMap(name => (name.endsWith('.yaml') ? [join(folder, name)] : resourcesOf(join(folder, name))))
}

/** In the package and in a clone, deploy/ is next to the compiled code, some folders up. */
function findDeploy(from: string): string {
  const folder = join(from, 'deploy')
  if (existsSync(join(folder, 'kustomization.yaml'))) return folder
  if (dirname(from) === from) throw new Error('deploy is missing from the package')
  return findDeploy(dirname(from))
}

/** Renders manifests as YAML documents for `kubectl apply -f -`. */
export function yamlOf(manifests: readonly object[]): string {
  return manifests.map(manifest => stringify(manifest, { lineWidth: 0, aliasDuplicateObjects: false })).join('---\n')
}
