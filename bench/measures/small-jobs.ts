import type { Measure } from '../contender.ts'
import { table, whole } from '../markdown.ts'
import { openOwnStore } from '../own-store.ts'
import { smallJobRates } from '../work.ts'

/** Many jobs of three stages of one task, one after the other. */
export const measure: Measure = {
  name: 'small-jobs',
  async run({ cluster, quick }) {
    const store = await openOwnStore(cluster, 'small-jobs')
    const count = quick ? 100 : 3000
    const { submitted, workedOff, endToEnd } = await smallJobRates(store.engine, count)
    await store.close()
    const rows = [
      ['submitted, without workers', whole(submitted)],
      ['worked off afterwards', whole(workedOff)],
      ['end to end, with workers that run meanwhile', whole(endToEnd)],
    ]
    const note = `${whole(count)} jobs, submitted by four callers in the process of the two workers.`
    return {
      title: 'Jobs with three stages of one task',
      markdown: `${table(['', 'jobs/s'], rows)}\n\n${note}\n`,
      figures: [
        { name: 'small-jobs.submitted', value: submitted, unit: 'jobs/s', better: 'higher' },
        { name: 'small-jobs.worked-off', value: workedOff, unit: 'jobs/s', better: 'higher' },
        { name: 'small-jobs.end-to-end', value: endToEnd, unit: 'jobs/s', better: 'higher' },
      ],
    }
  },
}
