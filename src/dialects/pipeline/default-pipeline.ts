/** The pipeline of the original, for requests that name none: its stages, and what a request may say to them. */
import type { JobSpec, StageSpec } from '../../spec/job-spec.ts'
import { flag, type Reading, textOrNull, whole } from './reading.ts'

/** Settings that give this name to a pipeline of their own put it in the place of this one. */
export const defaultName = 'default'

/** A stage that throws has failed, without a second try; the ones behind it run all the same. */
const usual = { onFailure: 'continue', retry: { attempts: 1 } } as const

const work = (name: string, payload = '{"config": input}'): StageSpec => ({
  name,
  task: name,
  forEach: `[${payload}]`,
  ...usual,
})

const before = ['ingest', 'classify', 'neutralize', 'brief'] as const

/** What each of them came to. */
const results = before.map(name => `"${name}": {"state": stages.${name}.state, "results": stages.${name}.output}`)

export const defaultPipeline: JobSpec = {
  name: 'pipeline',
  // By its age: also of a run that no worker has begun.
  deadlineSeconds: 7200,
  stages: [
    ...before.map(name => work(name)),
    { name: 'summary', gives: `{${results.join(', ')}}` },
    {
      ...work('evaluation', '{"config": input, "summary": stages.summary.output}'),
      // Of brief, too: what was given stays, also where brief is done again.
      needs: ['brief', 'summary'],
      when: 'has(input.enable_evaluation) && input.enable_evaluation',
    },
    {
      ...work('optimization', '{"config": input, "evaluation": stages.evaluation.output[0]}'),
      when: 'has(input.enable_auto_optimize) && input.enable_auto_optimize && stages.evaluation.state != "skipped"',
    },
  ],
}

/** What any pipeline may be asked. */
export const switches: Readonly<Record<string, Reading>> = {
  enable_evaluation: flag(false),
  enable_auto_optimize: flag(false),
}

/** What this one may be asked, and what it does where that is not said. */
export const config: Readonly<Record<string, Reading>> = {
  max_items_per_source: whole(25, { from: 1, to: 100 }),
  classify_limit: whole(200, { from: 1, to: 500 }),
  neutralize_limit: whole(25, { from: 1, to: 500 }),
  max_workers: whole(5, { from: 1, to: 10 }),
  cutoff_hours: whole(24, { from: 1, to: 72 }),
  teacher_model: textOrNull,
  eval_sample_size: whole(10, { from: 1, to: 50 }),
  ...switches,
}
