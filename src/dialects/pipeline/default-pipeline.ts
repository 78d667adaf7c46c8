/** The pipeline of the original, for requests that name none: its stages and their configuration. */

import { orNull } from '../../schema/check.ts'
import type { JobSpec, StageSpec } from '../../spec/job-spec.ts'
import { anyText, type FieldTable, flag, oneWordOf, type RequestField, wholeNumber } from '../kit/fields.ts'
import { statuses } from './words.ts'

/** A pipeline with this name in the server's settings replaces this one. */
export const defaultName = 'default'

/** A stage that throws has failed without a retry. The stages after it still run. */
const stageDefaults = { onFailure: 'continue', retry: { attempts: 1 } } as const

const work = (name: string, payload = '{"config": input}'): StageSpec => ({
  name,
  task: name,
  forEach: `[${payload}]`,
  ...stageDefaults,
})

const before = ['ingest', 'classify', 'neutralize', 'brief'] as const

/** The state and the output of each stage before the summary. */
const results = before.map(name => `"${name}": {"state": stages.${name}.state, "results": stages.${name}.output}`)

export const defaultPipeline: JobSpec = {
  name: 'pipeline',
  // Counts from the submission, so it also ends a run that no worker has started.
  deadlineSeconds: 7200,
  stages: [
    ...before.map(name => work(name)),
    { name: 'summary', gives: `{${results.join(', ')}}` },
    {
      ...work('evaluation', '{"config": input, "summary": stages.summary.output}'),
      // Needs brief too: the summary's value stays as it is when brief is run again.
      needs: ['brief', 'summary'],
      when: 'has(input.enable_evaluation) && input.enable_evaluation',
    },
    {
      ...work('optimization', '{"config": input, "evaluation": stages.evaluation.output[0]}'),
      when: 'has(input.enable_auto_optimize) && input.enable_auto_optimize && stages.evaluation.state != "skipped"',
    },
  ],
}

const flags: Readonly<Record<string, boolean>> = {
  ...{ true: true, t: true, yes: true, y: true, on: true, 1: true },
  ...{ false: false, f: false, no: false, n: false, off: false, 0: false },
}

/** As in the original, numbers and switches may be sent as text. */
const parseFlag = (text: string) => flags[text.toLowerCase()]
const parseWhole = (text: string) => (/^[+-]?\d{1,15}$/.test(text.trim()) ? Number(text) : undefined)

const off: RequestField<boolean> = { ...flag, parse: parseFlag, default: false }
const wholeOr = (usual: number, from: number, to: number): RequestField<number> => ({
  ...wholeNumber(from, to, parseWhole),
  default: usual,
})

/** Fields of a request for any pipeline. */
export const switches: FieldTable = { enable_evaluation: off, enable_auto_optimize: off }

/** Fields of a request for this pipeline. */
export const config: FieldTable = {
  max_items_per_source: wholeOr(25, 1, 100),
  classify_limit: wholeOr(200, 1, 500),
  neutralize_limit: wholeOr(25, 1, 500),
  max_workers: wholeOr(5, 1, 10),
  cutoff_hours: wholeOr(24, 1, 72),
  teacher_model: { check: orNull(anyText.check), default: null },
  eval_sample_size: wholeOr(10, 1, 50),
  ...switches,
}

export const listing = { limit: wholeOr(10, 1, 1000), status: oneWordOf(statuses) }
