import { jobLifecycle } from '../../kernel/job.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import type { JobView, StageView } from '../../protocol/jobs.ts'
import type { TaskView } from '../../protocol/tasks.ts'
import { pageFlags, said } from '../asking.ts'
import { apiCommand } from '../command.ts'
import { eventLines } from '../events.ts'
import { findJobId } from '../find-id.ts'
import { type Line, styled } from '../line.ts'
import { between, relative } from '../moments.ts'
import { causeOf, stateOf } from '../states.ts'
import { type Column, facts, listed, pageEnd, table } from '../table.ts'
import { harmlessJson } from '../text.ts'

const columns: readonly Column<JobView>[] = [
  { head: 'ID', of: job => job.id, cut: 'start', least: 9 },
  { head: 'STATE', of: job => stateOf('job', job.state), least: 9 },
  { head: 'NAME', of: job => job.name, least: 6 },
  { head: 'DONE', of: job => `${job.progress.percent} %`, align: 'right', least: 5 },
  { head: 'BAD', of: job => String(job.progress.bad), align: 'right', spare: true },
  { head: 'CREATED', of: job => relative(job.createdAt), align: 'right', spare: true },
  { head: 'TOOK', of: job => between(job.createdAt, job.endedAt), align: 'right', spare: true },
]

export const jobList = apiCommand({
  name: 'job list',
  says: 'List jobs, newest first.',
  flags: {
    state: { kind: 'list', value: 'STATE', says: 'only in this state, may be repeated', words: statesOf(jobLifecycle) },
    name: { kind: 'text', value: 'NAME', says: 'only of this name' },
    ...pageFlags,
  },
  async run({ api, flags }) {
    const { name, limit, cursor } = flags
    const state = flags.state as readonly JobView['state'][] | undefined
    const page = await api.jobs(said({ state, name, limit, cursor }))
    return listed(page, columns, 'There are no jobs.')
  },
})

const stageColumns: readonly Column<StageView>[] = [
  { head: 'STAGE', of: ({ name, kind }) => (kind === 'undo' ? `undo ${name}` : name), least: 8 },
  { head: 'STATE', of: ({ state }) => stateOf('stage', state), least: 9 },
  { head: 'DONE', of: ({ progress: { good, bad, total } }) => `${good + bad}/${total}`, align: 'right' },
  { head: 'BAD', of: ({ progress }) => String(progress.bad), align: 'right' },
  { head: 'TASK', of: ({ task }) => task ?? '', spare: true },
  { head: 'WHY', of: ({ error, cause }) => error?.message ?? causeOf(cause) ?? '', spare: true },
]

const runningColumns: readonly Column<TaskView>[] = [
  { head: 'IN HAND', of: ({ id }) => id, cut: 'start', least: 9 },
  { head: 'TYPE', of: ({ type }) => type },
  { head: 'STATE', of: ({ state }) => stateOf('task', state) },
  { head: 'WORKER', of: ({ owner }) => owner ?? '', spare: true },
  { head: 'SINCE', of: ({ startedAt }) => relative(startedAt), align: 'right' },
  { head: 'PROGRESS', of: ({ progress }) => (progress === null ? '' : harmlessJson(progress)), spare: true },
]

const failedColumns: readonly Column<TaskView>[] = [
  { head: 'IN TROUBLE', of: ({ id }) => id, cut: 'start', least: 9 },
  { head: 'TYPE', of: ({ type }) => type },
  { head: 'STATE', of: ({ state }) => stateOf('task', state) },
  { head: 'FAILURES', of: ({ failures }) => String(failures), align: 'right', spare: true },
  { head: 'LAST ERROR', of: ({ error }) => error?.message ?? '', least: 10 },
]

const shownTasks = 20

export const jobDescribe = apiCommand({
  name: 'job describe',
  says: 'Show a job: its stages, counts, what is in hand and what went wrong.',
  takes: { id: 'the job, or the beginning or the end of its id' },
  async run({ api, args }) {
    const id = await findJobId(api, args.id)
    const [job, inHand, inTrouble] = await Promise.all([
      api.job(id),
      api.tasks({ jobId: id, state: ['assigned', 'running'], limit: shownTasks }),
      api.tasks({ jobId: id, state: ['retrying', 'failed', 'dead_lettered', 'expired'], limit: shownTasks }),
    ])
    const show = ({ width }: { width: number }): Line[] => [
      [styled('bold', job.name), '  ', stateOf('job', job.state), `  ${job.progress.percent} %`],
      ...jobFacts(job),
      ...part(table(job.stages, stageColumns, width), job.stages.length),
      ...part(table(inHand.items, runningColumns, width), inHand.items.length, inHand.next),
      ...part(table(inTrouble.items, failedColumns, width), inTrouble.items.length, inTrouble.next),
    ]
    return { data: { ...job, inHand: inHand.items, inTrouble: inTrouble.items }, show }
  },
})

function part(lines: readonly Line[], rows: number, next: string | null = null): Line[] {
  return rows === 0 ? [] : ['', ...lines, ...(next === null ? [] : [styled('dim', `… and more: pawl task list`)])]
}

function jobFacts(job: JobView): Line[] {
  const { total, good, bad, partial, skipped } = job.progress
  return facts([
    ['id', job.id],
    ['why', causeOf(job.cause)],
    ['tasks', `${total}: ${good} good, ${bad} bad, ${partial} partial, ${skipped} skipped`],
    ['priority', job.priority === 0 ? null : String(job.priority)],
    ['round', job.round === 1 ? null : String(job.round)],
    ['open', job.open === 'sealed' ? null : job.open],
    ['created', `${relative(job.createdAt)} (${job.createdAt})`],
    ['deadline', job.endedAt === null ? relative(job.deadlineAt) : null],
    ['ended', job.endedAt && `${relative(job.endedAt)}, after ${between(job.createdAt, job.endedAt)}`],
    ['correlation', job.correlationId],
    ['cloned from', job.clonedFrom],
    ['input', job.input === null ? null : harmlessJson(job.input)],
    ['metadata', Object.keys(job.metadata).length === 0 ? null : harmlessJson(job.metadata)],
  ])
}

export const jobEvents = apiCommand({
  name: 'job events',
  says: 'Show what happened to a job, oldest first.',
  takes: { id: 'the job, or the beginning or the end of its id' },
  flags: pageFlags,
  async run({ api, args, flags }) {
    const page = await api.jobEvents(await findJobId(api, args.id), said(flags))
    return { data: page, show: ({ width }) => [...eventLines(page.items, width), ...pageEnd(page)] }
  },
})
