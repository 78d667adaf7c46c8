/** The document's metrics. */

import type { PhaseStats } from '../../protocol/admin/stats.ts'
import { figure, orNull, view, whole } from '../../protocol/shapes.ts'
import type { AskersEngine } from '../askers-engine.ts'

export async function readMetrics(engine: AskersEngine) {
  const { moves, deadLetters } = await engine.totals()
  const { types } = await engine.stats()
  const { claimConflicts, leaseRenewals } = engine.figures()
  const count = (move: string) => moves.reduce((sum, row) => sum + (row.what === move ? row.n : 0), 0)
  return {
    claims: count('claimed'),
    claim_conflicts: claimConflicts,
    lease_renewals: leaseRenewals,
    lease_expiries: count('lost'),
    retries: count('retried'),
    failures: count('failures'),
    dlq_count: deadLetters,
    // By type, over the last hour.
    latency: Object.fromEntries(
      types.map(({ type, queue, run }) => [type, { queue: latencyOf(queue), run: latencyOf(run) }]),
    ),
  }
}

function latencyOf({ count, p50Seconds, p95Seconds }: PhaseStats) {
  return { count, p50_sec: p50Seconds, p95_sec: p95Seconds }
}

const latency = view<ReturnType<typeof latencyOf>>({ count: whole, p50_sec: orNull(figure), p95_sec: orNull(figure) })

export const metricsSchema = view<Awaited<ReturnType<typeof readMetrics>>>({
  claims: whole,
  claim_conflicts: whole,
  lease_renewals: whole,
  lease_expiries: whole,
  retries: whole,
  failures: whole,
  dlq_count: whole,
  latency: {
    type: 'object',
    additionalProperties: view<{ queue: unknown; run: unknown }>({ queue: latency, run: latency }),
  },
})
