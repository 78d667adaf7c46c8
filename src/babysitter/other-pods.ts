/**
 * Workers in pods that Pawl did not start: a Deployment of somebody else's, say. Where such a worker runs is not known from
 * its name, so a pod that is not found has vanished only if it was seen before; one that is found dead needs no more proof.
 * Sightings are kept in memory only. After a restart of the server, leases decide until the pod is seen again.
 */
import { lostOthers, type OtherWorker } from '../runners/compare.ts'
import { otherPodOf } from '../runners/names.ts'
import type { LostWorker, Runner } from '../runners/runner.ts'

export type OtherPods = (workers: readonly string[], namespaces: readonly string[]) => Promise<readonly LostWorker[]>

export function watchOtherPods(runner: Runner): OtherPods {
  let seenIn = new Map<string, string>()
  return async (workers, namespaces) => {
    const others = [...new Set(workers)].flatMap((worker): OtherWorker[] => {
      const pod = otherPodOf(worker)
      return pod === undefined ? [] : [{ worker, ...pod, namespace: seenIn.get(worker) ?? null }]
    })
    if (others.length === 0) return []
    const spaces = [...namespaces, ...others.flatMap(({ namespace }) => namespace ?? [])]
    const { lost, alive } = lostOthers(others, await runner.findPods(spaces, new Set(others.map(({ name }) => name))))
    // Workers whose pods could not be looked up this time stay known. Workers that hold no task any more are forgotten.
    const known = others.flatMap(({ worker, namespace }) => (namespace === null ? [] : [[worker, namespace] as const]))
    seenIn = new Map([...known, ...alive])
    return lost
  }
}
