import { jobLifecycle } from '../../kernel/job.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import { type JobOrder, type JobView, jobOrders } from '../../protocol/jobs/jobs.ts'
import { showingCommand } from '../command.ts'
import { durationBetween, relativeTime } from '../durations.ts'
import { eventLines } from '../event-lines.ts'
import { findJobId } from '../find-id.ts'
import { pageFlags, withoutUndefined } from '../shared-flags.ts'
import { styledState } from '../states.ts'
import { type Column, pageEnd, pageResult } from '../table.ts'

const columns: readonly Column<JobView>[] = [
  { header: 'ID', value: job => job.id, cut: 'start', minWidth: 9 },
  { header: 'STATE', value: job => styledState('job', job.state), minWidth: 9 },
  { header: 'NAME', value: job => job.name, minWidth: 6 },
  { header: 'DONE', value: job => `${job.progress.percent} %`, align: 'right', minWidth: 5 },
  { header: 'BAD', value: job => String(job.progress.bad), align: 'right', optional: true },
  { header: 'CREATED', value: job => relativeTime(job.createdAt), align: 'right', optional: true },
  { header: 'TOOK', value: job => durationBetween(job.createdAt, job.endedAt), align: 'right', optional: true },
]

export const jobList = showingCommand({
  name: 'job list',
  summary: 'List jobs, newest first.',
  flags: {
    state: {
      kind: 'list',
      value: 'STATE',
      summary: 'only in this state, may be repeated',
      words: statesOf(jobLifecycle),
    },
    name: { kind: 'text', value: 'NAME', summary: 'only with this name' },
    search: { kind: 'text', value: 'TEXT', summary: 'only if the name contains this or the id starts with it' },
    order: { kind: 'text', value: 'ORDER', summary: 'the order; default: newest', words: jobOrders },
    ...pageFlags,
  },
  async run({ api, flags }) {
    const { name, search, limit, cursor } = flags
    const order = flags.order as JobOrder | undefined
    const state = flags.state as readonly JobView['state'][] | undefined
    const page = await api.jobs(withoutUndefined({ state, name, search, order, limit, cursor }))
    return pageResult(page, columns, 'There are no jobs.')
  },
})

export const jobEvents = showingCommand({
  name: 'job events',
  summary: 'Show the events of a job, oldest first.',
  parameters: { id: 'the id of the job, or its beginning or end' },
  flags: pageFlags,
  async run({ api, args, flags }) {
    const page = await api.jobEvents(await findJobId(api, args.id), withoutUndefined(flags))
    return { data: page, show: ({ width }) => [...eventLines(page.items, width), ...pageEnd(page)] }
  },
})
