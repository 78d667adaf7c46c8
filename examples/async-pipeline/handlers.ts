/** Stub handlers for the stages: each takes a moment and returns what its stage came to. Put your own work in their place. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineTask, type Task } from 'pawl'

interface Payload {
  /** The config of the request, with defaults filled in. */
  readonly config: { readonly max_items_per_source: number }
  /** For the evaluation: the results of the earlier stages. */
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
      // A cancel of the run ends it here: the signal aborts, and what is thrown then is no failure.
      await sleep(500, undefined, { signal })
      return report(payload as Payload)
    },
  })

const completed = (metrics: Record<string, number>): Report => ({ status: 'completed', metrics, errors: [] })

export const ingest = stub('ingest', ({ config }) => completed({ total: 2 * config.max_items_per_source }))

/** Some of it failed: the stage is partial, and so is the run. */
export const classify = stub('classify', ({ config }) => ({
  status: 'partial',
  metrics: { total: 2 * config.max_items_per_source, failed: 1 },
  errors: ['a story without a text'],
}))

export const neutralize = stub('neutralize', () => completed({ total: 25 }))
export const brief = stub('brief', () => completed({ sections: 5 }))
export const evaluation = stub('evaluation', ({ summary }) => completed({ stages: Object.keys(summary ?? {}).length }))
export const optimization = stub('optimization', () => completed({ prompts_updated: 1 }))
