import type { Engine } from '../engine/engine.ts'
import { demandQueues } from '../engine/queue-scope.ts'
import type { ClaimedTaskView } from '../engine/tasks/read-tasks.ts'
import { Problem } from '../kernel/problem.ts'

/**
 * The leases of a request. Workers of most dialects send no epoch, so the dialect finds it, and the proof that a worker
 * holds a lease is its key: only the key that claimed may report. A client without a key is on the same machine, and may
 * report on anything.
 */
export function leasesOf(
  engine: Engine,
  { holder, queues }: { readonly holder: string; readonly queues: readonly string[] | null },
) {
  const found = new Map<string, ClaimedTaskView>()
  const claimed = new Set<string>()
  const isKeyed = holder !== ''

  async function find(id: string): Promise<ClaimedTaskView> {
    const known = found.get(id.toLowerCase())
    if (known !== undefined) return known
    const lease = isKeyed ? await engine.internals.claimedTask(id) : { task: await engine.task(id), keys: new Map() }
    demandQueues(queues, [lease.task.queue])
    if (isKeyed && ![...lease.keys.values()].includes(holder)) {
      throw new Problem('KEY_REFUSED', { id, why: 'another key claimed this task, or none did' })
    }
    found.set(lease.task.id, lease)
    return lease
  }

  return {
    find,
    learn: (id: string) => void claimed.add(id),
    /** Whether the key is known to have claimed the task. */
    knows: (id: string) => claimed.has(id) || found.has(id.toLowerCase()),
    /** Throws unless the key holds the lease of this epoch, or the current one. Returns the task if it was read. */
    async demand(id: string, epoch: number | null) {
      if (!isKeyed) return found.get(id.toLowerCase())?.task
      const { task, keys } = await find(id)
      if (keys.get(epoch ?? task.epoch) !== holder) throw new Problem('LEASE_LOST', { id, epoch: epoch ?? task.epoch })
      return task
    },
  }
}
