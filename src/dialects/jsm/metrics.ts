/** The document's figures. Of those that a process counts about itself, the names of the others say nothing. */

import type { PhaseStats } from '../../protocol/admin/stats.ts'
import { figure, orNull, view, whole } from '../../protocol/shapes.ts'
import type { AskersEngine } from '../askers-engine.ts'

interface Latency {
  readonly count: number
  readonly p50_sec: number | null
  readonly p95_sec: number | null
}

export interface Metrics {
  readonly claims: number
  readonly claim_conflicts: number
  readonly lease_renewals: number
  readonly lease_expiries: number
  readonly retries: number
  readonly failures: number
  readonly dlq_count: number
  /** By type, over the last hour. */
  readonly latency: Readonly<Record<string, { readonly queue: Latency; readonly run: Latency }>>
}

export async function readMetrics(engine: AskersEngine): Promise<Metrics> {
  const { moves, deadLetters } = await engine.totals()
  const { types } = await engine.stats()
  const { claimConflicts, leaseRenewals } = engine.figures()
  const count = (what: string) => moves.reduce((sum, row) => sum + (row.what === what ? row.n : 0), 0)
  return {
    claims: count('claimed'),
    claim_conflicts: claimConflicts,
    lease_renewals: leaseRenewals,
    lease_expiries: count('lost'),
    retries: count('retried'),
    failures: count('failures'),
    dlq_count: deadLetters,
    latency: Object.fromEntries(
      types.map(({ type, queue, run }) => [type, { queue: latencyOf(queue), run: latencyOf(run) }]),
    ),
  }
}

function latencyOf({ count, p50Seconds, p95Seconds }: PhaseStats): Latency {
  return { count, p50_sec: p50Seconds, p95_sec: p95Seconds }
}

const latency = view<Latency>({ count: whole, p50_sec: orNull(figure), p95_sec: orNull(figure) })

export const metricsSchema = view<Metrics>({
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
