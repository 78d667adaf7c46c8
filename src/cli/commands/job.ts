import { jobLifecycle } from '../../kernel/job.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import { sanitizeJson } from '../../kernel/sanitize.ts'
import { withoutUndefined } from '../../kernel/without-undefined.ts'
import { type JobOrder, type JobView, jobOrders, type StageView } from '../../protocol/jobs/jobs.ts'
import type { PawlApi } from '../../protocol/operations.ts'
import type { TaskQuery } from '../../protocol/tasks/tasks.ts'
import { type Command, showingCommand } from '../command.ts'
import { durationBetween, relativeTime } from '../durations.ts'
import { commandsFor, type EntityKind } from '../entity-commands.ts'
import { findJobId, jobParameter } from '../find-id.ts'
import { pageFlags, stateFlag } from '../shared-flags.ts'
import { readableCause, styledState } from '../states.ts'
import { type Line, styled } from '../styled-line.ts'
import { type Column, keyValueLines, pageResult, table } from '../table.ts'
import { type TaskWithWorker, withWorkers } from '../task-files.ts'

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
    state: stateFlag(statesOf(jobLifecycle)),
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

const jobs: EntityKind<JobView> = {
  noun: 'job',
  parameters: jobParameter,
  find: findJobId,
  line: ({ name, id, state, endsAs }) => [
    styled('bold', name),
    ` ${id} is `,
    styledState('job', state),
    endsAs === null || endsAs === state ? '' : `, and will end as ${endsAs}`,
  ],
}

const { control, cancel, remove, events } = commandsFor(jobs)

export const jobEvents = events((api, id, query) => api.jobEvents(id, query))

export const jobControl: readonly Command[] = [
  control('start', 'Start a job that was submitted with `start: false`.', (api, id, call) => api.startJob(id, call)),
  control('pause', 'Pause a job. Running tasks may finish; no more are claimed.', (api, id, call) =>
    api.pauseJob(id, call),
  ),
  control(
    'resume',
    'Resume a paused job, or start the next round of one that failed or was cancelled.',
    (api, id, call) => api.resumeJob(id, call),
  ),
  cancel((api, id, call) => api.cancelJob(id, call)),
  control(
    'retry',
    'Retry the stages and tasks that did not succeed.',
    (api, id, call, { clone }) => api.retryJob(id, { ...call, ...(clone && { clone }) }),
    { clone: { kind: 'switch', summary: 'retry in a new job that contains only the unsuccessful work' } },
  ),
  control('seal', 'Seal a job: no more stages can be added.', (api, id, call) => api.sealJob(id, call)),
  remove('Delete a job that has ended, with its history.', (api, id, call) => api.deleteJob(id, call)),
]

const stageColumns: readonly Column<StageView>[] = [
  { header: 'STAGE', value: ({ name, kind }) => (kind === 'undo' ? `undo ${name}` : name), minWidth: 8 },
  { header: 'STATE', value: ({ state }) => styledState('stage', state), minWidth: 9 },
  { header: 'DONE', value: doneOf, align: 'right' },
  { header: 'BAD', value: ({ progress }) => String(progress.bad), align: 'right' },
  { header: 'TASK', value: ({ task }) => task ?? '', optional: true },
  { header: 'REASON', value: ({ error, cause }) => error?.message ?? readableCause(cause) ?? '', optional: true },
]

/** The counts of a stage with datums have the form that Pachyderm shows: processed + skipped / total. */
function doneOf({ files, progress: { good, bad, skipped, total } }: StageView): string {
  return files?.datums ? `${good - skipped} + ${skipped} / ${total}` : `${good + bad}/${total}`
}

/** Columns for datums and pods appear only if the job has any. */
function columnsOf(
  header: string,
  rows: readonly TaskWithWorker[],
  own: readonly Column<TaskWithWorker>[],
): readonly Column<TaskWithWorker>[] {
  const hasDatums = rows.some(({ datum }) => datum !== null)
  const hasPods = rows.some(({ pod }) => pod !== null)
  return [
    { header, value: ({ id }) => id, cut: 'start', minWidth: 9 },
    ...(hasDatums
      ? [{ header: 'DATUM', value: ({ datum, type }: TaskWithWorker) => datum ?? type, minWidth: 12 }]
      : [typeColumn]),
    { header: 'STATE', value: ({ state }) => styledState('task', state) },
    ...(hasPods
      ? podColumns
      : [{ header: 'WORKER', value: ({ worker }: TaskWithWorker) => worker ?? '', optional: true as const }]),
    { header: 'ATTEMPTS', value: ({ attempts }) => String(attempts), align: 'right', optional: true },
    ...own,
  ]
}

const typeColumn: Column<TaskWithWorker> = { header: 'TYPE', value: ({ type }) => type }

const podColumns: readonly Column<TaskWithWorker>[] = [
  { header: 'NODE', value: ({ node }) => node ?? '', minWidth: 6 },
  { header: 'POD', value: ({ pod, worker }) => pod ?? worker ?? '', cut: 'start', minWidth: 8 },
]

const progressColumns: readonly Column<TaskWithWorker>[] = [
  { header: 'SINCE', value: ({ startedAt }) => relativeTime(startedAt), align: 'right' },
  { header: 'PROGRESS', value: ({ progress }) => (progress === null ? '' : sanitizeJson(progress)), optional: true },
]

const errorColumns: readonly Column<TaskWithWorker>[] = [
  { header: 'LAST ERROR', value: ({ error }) => error?.message ?? '', minWidth: 10 },
]

const shownTasks = 20

export const jobDescribe = showingCommand({
  name: 'job describe',
  summary: 'Show a job: its stages, counts, running tasks and failures.',
  details: `For a stage whose tasks are datums, DONE is "processed + skipped / total", and BAD counts the failed ones.
With --json, every running or failed task has its datum, worker, node, pod and attempts.`,
  parameters: jobs.parameters,
  completes: 'job',
  async run({ api, args }) {
    const id = await jobs.find(api, args.id)
    const [job, inHand, inTrouble] = await Promise.all([
      api.job(id),
      tasksOf(api, id, ['assigned', 'running']),
      tasksOf(api, id, ['retrying', 'failed', 'dead_lettered', 'expired']),
    ])
    const show = ({ width }: { width: number }): Line[] => [
      [styled('bold', job.name), '  ', styledState('job', job.state), `  ${job.progress.percent} %`],
      ...jobFacts(job),
      ...(job.stages.length === 0 ? [] : ['', ...table(job.stages, stageColumns, width)]),
      ...taskSection('IN PROGRESS', inHand, progressColumns, width),
      ...taskSection('FAILED OR RETRYING', inTrouble, errorColumns, width),
    ]
    return { data: { ...job, inHand: inHand.items, inTrouble: inTrouble.items }, show }
  },
})

interface Part {
  readonly items: readonly TaskWithWorker[]
  readonly next: string | null
}

async function tasksOf(api: PawlApi, jobId: string, state: NonNullable<TaskQuery['state']>): Promise<Part> {
  const { items, next } = await api.tasks({ jobId, state, limit: shownTasks })
  return { items: await withWorkers(api, items), next }
}

function taskSection(
  header: string,
  { items, next }: Part,
  own: readonly Column<TaskWithWorker>[],
  width: number,
): Line[] {
  if (items.length === 0) return []
  const more = next === null ? [] : [styled('dim', `… and more: pawl task list --job ${items[0]!.jobId}`)]
  return ['', ...table(items, columnsOf(header, items, own), width), ...more]
}

function jobFacts(job: JobView): Line[] {
  const { total, good, bad, partial, skipped } = job.progress
  return keyValueLines([
    ['id', job.id],
    ['reason', readableCause(job.cause)],
    ['outputs', outputsOf(job)],
    ['tasks', `${total}: ${good} good, ${bad} bad, ${partial} partial, ${skipped} skipped`],
    ['priority', job.priority === 0 ? null : String(job.priority)],
    ['round', job.round === 1 ? null : String(job.round)],
    ['open', job.open === 'sealed' ? null : job.open],
    ['created', `${relativeTime(job.createdAt)} (${job.createdAt})`],
    ['deadline', job.endedAt === null ? relativeTime(job.deadlineAt) : null],
    ['ended', job.endedAt && `${relativeTime(job.endedAt)}, after ${durationBetween(job.createdAt, job.endedAt)}`],
    ['correlation', job.correlationId],
    ['cloned from', job.clonedFrom],
    ['input', job.input === null ? null : sanitizeJson(job.input)],
    ['metadata', Object.keys(job.metadata).length === 0 ? null : sanitizeJson(job.metadata)],
  ])
}

function outputsOf({ stages }: JobView): string {
  const folders = stages.flatMap(({ files }) => files?.outputs ?? [])
  return [...new Set(folders)].join(', ')
}
