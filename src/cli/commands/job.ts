import { jobLifecycle } from '../../kernel/job.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import { type JobOrder, type JobView, jobOrders } from '../../protocol/jobs/jobs.ts'
import { pageFlags, said } from '../asking.ts'
import { showingCommand } from '../command.ts'
import { eventLines } from '../events.ts'
import { findJobId } from '../find-id.ts'
import { between, relative } from '../moments.ts'
import { stateOf } from '../states.ts'
import { type Column, listed, pageEnd } from '../table.ts'

const columns: readonly Column<JobView>[] = [
  { head: 'ID', of: job => job.id, cut: 'start', least: 9 },
  { head: 'STATE', of: job => stateOf('job', job.state), least: 9 },
  { head: 'NAME', of: job => job.name, least: 6 },
  { head: 'DONE', of: job => `${job.progress.percent} %`, align: 'right', least: 5 },
  { head: 'BAD', of: job => String(job.progress.bad), align: 'right', spare: true },
  { head: 'CREATED', of: job => relative(job.createdAt), align: 'right', spare: true },
  { head: 'TOOK', of: job => between(job.createdAt, job.endedAt), align: 'right', spare: true },
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
    const page = await api.jobs(said({ state, name, search, order, limit, cursor }))
    return listed(page, columns, 'There are no jobs.')
  },
})

export const jobEvents = showingCommand({
  name: 'job events',
  summary: 'Show the events of a job, oldest first.',
  takes: { id: 'the job, or the beginning or the end of its id' },
  flags: pageFlags,
  async run({ api, args, flags }) {
    const page = await api.jobEvents(await findJobId(api, args.id), said(flags))
    return { data: page, show: ({ width }) => [...eventLines(page.items, width), ...pageEnd(page)] }
  },
})
