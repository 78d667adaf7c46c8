/** Runs the workers of a stage as a Kubernetes Job. It keeps no state: everything is in the cluster. */
import type { V1Job, V1Pod } from '@kubernetes/client-node'
import { checkPodRules } from '../kernel/pod-rules.ts'
import { Problem } from '../kernel/problem.ts'
import type { FoundPods, Seen, SeenJob, SeenPod } from './compare.ts'
import { type KubernetesApi, openKubernetesApi, statusOf } from './kubernetes-api.ts'
import { manifestOf, type StageToRun } from './manifest.ts'
import { jobNameOf, labels, selectorOf } from './names.ts'
import { type KubernetesSettings, type SettledKubernetes, settleKubernetes } from './settings.ts'

/** The stage itself is invalid, so retries cannot help. Any other refusal may be lifted. */
export function isHopeless({ code, details }: Problem): boolean {
  return code === 'OPTION_INVALID' || (code === 'KUBERNETES_REFUSED' && [400, 422].includes(Number(details.status)))
}

export interface Ensured {
  readonly stageId: string
  /** Why the workers could not be started; undefined if they exist, whoever started them. */
  readonly problem?: Problem
}

export type KubernetesRunner = Awaited<ReturnType<typeof openKubernetesRunner>>

/** Starts and watches the workers of stages. Every method is idempotent, and any number of servers may call it. */
export async function openKubernetesRunner(given: KubernetesSettings = {}) {
  const settings = settleKubernetes(given)
  const api = await openKubernetesApi(settings)
  return {
    /** The namespace for stages that do not name one. */
    namespace: api.namespace,

    /** Starts the workers of stages that have none. A stage that fails to start does not hold up the others. */
    ensure: (stages: readonly StageToRun[]): Promise<readonly Ensured[]> =>
      inTurn(
        stages,
        stage => make(api, settings, stage),
        ({ stageId }, problem) => ({ stageId, problem }),
      ),

    /** Stops the workers of a round, if there are any left. */
    async stop({ namespace, ...round }: { stageId: string; round: number; namespace?: string }): Promise<void> {
      await api.deleteJob(namespace ?? api.namespace, jobNameOf(round)).catch(ignoringStatus(404))
    },

    /** Lists Jobs and pods in these namespaces; undefined stands for the runner's own. */
    async inspect(namespaces: readonly (string | undefined)[]): Promise<Seen> {
      const names = [...new Set(namespaces.map(name => name ?? api.namespace))]
      return merged(await inTurn(names, namespace => inspectNamespace(api, settings, namespace), blindIn))
    },

    /** Finds pods by name in these namespaces. */
    async findPods(namespaces: readonly string[], names: ReadonlySet<string>): Promise<FoundPods> {
      const find = async (namespace: string): Promise<FoundPods> => {
        const pods = (await api.pods(namespace, '')).flatMap(pod => podIn(namespace, pod))
        return { namespaces: [namespace], pods: pods.filter(({ name }) => names.has(name)) }
      }
      const found = await inTurn([...new Set(namespaces)], find, () => ({ namespaces: [], pods: [] }))
      return { namespaces: found.flatMap(({ namespaces }) => namespaces), pods: found.flatMap(({ pods }) => pods) }
    },
  }
}

/**
 * Runs one item after the other. If one gets no response at all, the remaining ones fail with the same problem, because
 * each would wait as long. A response, even an error, concerns only its own item.
 */
async function inTurn<Item, Result>(
  items: readonly Item[],
  act: (item: Item) => Promise<Result>,
  failed: (item: Item, problem: Problem) => Result,
): Promise<Result[]> {
  const results: Result[] = []
  let away: Problem | undefined
  for (const item of items) {
    try {
      if (away !== undefined) throw away
      results.push(await act(item))
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      if (error.code === 'KUBERNETES_UNREACHABLE' && statusOf(error) === undefined) away = error
      results.push(failed(item, error))
    }
  }
  return results
}

/** If the Job exists already, another server created it, or this one did and lost the response. */
async function make(api: KubernetesApi, settings: SettledKubernetes, stage: StageToRun): Promise<Ensured> {
  const { stageId, runner, run, stageName } = stage
  // Checked again: the stage may have been stored before the rules were set, or by a server with other rules.
  checkPodRules(settings.allow, stageName, run, runner)
  await api.createJob(runner.namespace ?? api.namespace, manifestOf(stage, settings)).catch(ignoringStatus(409))
  return { stageId }
}

function ignoringStatus(status: number) {
  return (error: unknown): void => {
    if (statusOf(error) !== status) throw error
  }
}

async function inspectNamespace(api: KubernetesApi, { instance }: SettledKubernetes, namespace: string): Promise<Seen> {
  const selector = selectorOf(instance)
  const jobs = await api.jobs(namespace, selector)
  const pods = await api.pods(namespace, selector)
  return {
    namespaces: [namespace],
    blind: [],
    jobs: jobs.flatMap(job => seenJob(namespace, job)),
    pods: pods.flatMap(pod => seenPod(namespace, pod)),
  }
}

function blindIn(namespace: string, problem: Problem): Seen {
  return { namespaces: [], blind: [{ namespace, problem }], jobs: [], pods: [] }
}

function merged(parts: readonly Seen[]): Seen {
  return {
    namespaces: parts.flatMap(({ namespaces }) => namespaces),
    blind: parts.flatMap(({ blind }) => blind),
    jobs: parts.flatMap(({ jobs }) => jobs),
    pods: parts.flatMap(({ pods }) => pods),
  }
}

/** A Job without our labels is not ours, even if it has some of them. */
function seenJob(namespace: string, { metadata, status }: V1Job): SeenJob[] {
  const name = metadata?.name
  const stageId = metadata?.labels?.[labels.stageId]
  const round = Number(metadata?.labels?.[labels.round])
  if (name === undefined || stageId === undefined || !Number.isInteger(round)) return []
  const isTrue = (type: string) => status?.conditions?.find(is => is.type === type && is.status === 'True')
  const failed = isTrue('Failed')
  const state = failed !== undefined ? 'failed' : isTrue('Complete') !== undefined ? 'complete' : 'active'
  return [{ namespace, name, stageId, round, state, reason: failed?.reason ?? null, message: failed?.message ?? null }]
}

const phases: readonly string[] = ['Pending', 'Running', 'Succeeded', 'Failed'] satisfies SeenPod['phase'][]

function seenPod(namespace: string, pod: V1Pod): SeenPod[] {
  const stageId = pod.metadata?.labels?.[labels.stageId]
  return stageId === undefined ? [] : podIn(namespace, pod).map(seen => ({ ...seen, stageId }))
}

function podIn(namespace: string, { metadata, spec, status }: V1Pod): Omit<SeenPod, 'stageId'>[] {
  const name = metadata?.name
  if (name === undefined) return []
  const phase = phases.includes(status?.phase ?? '') ? (status?.phase as SeenPod['phase']) : 'Unknown'
  const ended = status?.containerStatuses?.find(({ state }) => state?.terminated !== undefined)?.state?.terminated
  return [{ namespace, name, node: spec?.nodeName ?? null, phase, reason: status?.reason ?? ended?.reason ?? null }]
}
