/** Stub handlers for the stages: each sleeps for a moment and returns a result. Replace them with your own work. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineTask, type Task } from 'pawl'

interface Payload {
  /** The config of the request, with defaults filled in. */
  readonly config: { readonly max_items_per_source: number }
  /** The results of the earlier stages. Only the evaluation gets it. */
  readonly summary?: unknown
}

interface Report {
  readonly status: 'completed' | 'partial'
  readonly metrics: Record<string, number>
  readonly errors: string[]
}

const stub = (type: string, report: (payload: Payload) => Report): Task =>
  defineTask({
    type,
    async handler(payload, { signal }) {
      // If the run is cancelled, the signal aborts and `sleep` throws. That does not count as a failure.
      await sleep(500, undefined, { signal })
      return report(payload as Payload)
    },
  })

const completed = (metrics: Record<string, number>): Report => ({ status: 'completed', metrics, errors: [] })

export const ingest = stub('ingest', ({ config }) => completed({ total: 2 * config.max_items_per_source }))

/** A part of the work failed, so the stage is partial, and so is the run. */
export const classify = stub('classify', ({ config }) => ({
  status: 'partial',
  metrics: { total: 2 * config.max_items_per_source, failed: 1 },
  errors: ['a story without a text'],
}))

export const neutralize = stub('neutralize', () => completed({ total: 25 }))
export const brief = stub('brief', () => completed({ sections: 5 }))
export const evaluation = stub('evaluation', ({ summary }) => completed({ stages: Object.keys(summary ?? {}).length }))
export const optimization = stub('optimization', () => completed({ prompts_updated: 1 }))
