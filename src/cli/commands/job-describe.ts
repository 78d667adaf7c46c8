import { sanitizeJson } from '../../kernel/sanitize.ts'
import type { PawlApi } from '../../protocol/api.ts'
import type { JobView, StageView } from '../../protocol/jobs/jobs.ts'
import type { TaskQuery } from '../../protocol/tasks/tasks.ts'
import { showingCommand } from '../command.ts'
import { type TaskWithWorker, withWorkers } from '../datums.ts'
import { findJobId } from '../find-id.ts'
import { type Line, styled } from '../line.ts'
import { between, relative } from '../moments.ts'
import { causeOf, stateOf } from '../states.ts'
import { type Column, facts, table } from '../table.ts'

const stageColumns: readonly Column<StageView>[] = [
  { head: 'STAGE', of: ({ name, kind }) => (kind === 'undo' ? `undo ${name}` : name), least: 8 },
  { head: 'STATE', of: ({ state }) => stateOf('stage', state), least: 9 },
  { head: 'DONE', of: doneOf, align: 'right' },
  { head: 'BAD', of: ({ progress }) => String(progress.bad), align: 'right' },
  { head: 'TASK', of: ({ task }) => task ?? '', spare: true },
  { head: 'WHY', of: ({ error, cause }) => error?.message ?? causeOf(cause) ?? '', spare: true },
]

/** Of datums, as Pachyderm shows them: processed + passed over / all. */
function doneOf({ files, progress: { good, bad, skipped, total } }: StageView): string {
  return files?.datums ? `${good - skipped} + ${skipped} / ${total}` : `${good + bad}/${total}`
}

/** What a job has nothing of is not shown: datums, pods. */
function columnsOf(
  head: string,
  rows: readonly TaskWithWorker[],
  own: readonly Column<TaskWithWorker>[],
): readonly Column<TaskWithWorker>[] {
  const hasDatums = rows.some(({ datum }) => datum !== null)
  const hasPods = rows.some(({ pod }) => pod !== null)
  return [
    { head, of: ({ id }) => id, cut: 'start', least: 9 },
    ...(hasDatums ? [{ head: 'DATUM', of: ({ datum, type }: TaskWithWorker) => datum ?? type, least: 12 }] : [type]),
    { head: 'STATE', of: ({ state }) => stateOf('task', state) },
    ...(hasPods
      ? inPods
      : [{ head: 'WORKER', of: ({ worker }: TaskWithWorker) => worker ?? '', spare: true as const }]),
    { head: 'ATTEMPTS', of: ({ attempts }) => String(attempts), align: 'right', spare: true },
    ...own,
  ]
}

const type: Column<TaskWithWorker> = { head: 'TYPE', of: ({ type }) => type }

const inPods: readonly Column<TaskWithWorker>[] = [
  { head: 'NODE', of: ({ node }) => node ?? '', least: 6 },
  { head: 'POD', of: ({ pod, worker }) => pod ?? worker ?? '', cut: 'start', least: 8 },
]

const sinceAndProgress: readonly Column<TaskWithWorker>[] = [
  { head: 'SINCE', of: ({ startedAt }) => relative(startedAt), align: 'right' },
  { head: 'PROGRESS', of: ({ progress }) => (progress === null ? '' : sanitizeJson(progress)), spare: true },
]

const lastError: readonly Column<TaskWithWorker>[] = [
  { head: 'LAST ERROR', of: ({ error }) => error?.message ?? '', least: 10 },
]

const shownTasks = 20

export const jobDescribe = showingCommand({
  name: 'job describe',
  summary: 'Show a job: its stages, counts, running tasks and failures.',
  more: `Of a stage whose tasks are datums DONE is "processed + passed over / all"; BAD counts those that failed.
With --json each task in hand or in trouble has its datum, worker, node, pod and attempts.`,
  takes: { id: 'the job, or the beginning or the end of its id' },
  async run({ api, args }) {
    const id = await findJobId(api, args.id)
    const [job, inHand, inTrouble] = await Promise.all([
      api.job(id),
      tasksOf(api, id, ['assigned', 'running']),
      tasksOf(api, id, ['retrying', 'failed', 'dead_lettered', 'expired']),
    ])
    const show = ({ width }: { width: number }): Line[] => [
      [styled('bold', job.name), '  ', stateOf('job', job.state), `  ${job.progress.percent} %`],
      ...jobFacts(job),
      ...(job.stages.length === 0 ? [] : ['', ...table(job.stages, stageColumns, width)]),
      ...part('IN HAND', inHand, sinceAndProgress, width),
      ...part('IN TROUBLE', inTrouble, lastError, width),
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

function part(head: string, { items, next }: Part, own: readonly Column<TaskWithWorker>[], width: number): Line[] {
  if (items.length === 0) return []
  const more = next === null ? [] : [styled('dim', '… and more: pawl task list')]
  return ['', ...table(items, columnsOf(head, items, own), width), ...more]
}

function jobFacts(job: JobView): Line[] {
  const { total, good, bad, partial, skipped } = job.progress
  return facts([
    ['id', job.id],
    ['why', causeOf(job.cause)],
    ['outputs', outputsOf(job)],
    ['tasks', `${total}: ${good} good, ${bad} bad, ${partial} partial, ${skipped} skipped`],
    ['priority', job.priority === 0 ? null : String(job.priority)],
    ['round', job.round === 1 ? null : String(job.round)],
    ['open', job.open === 'sealed' ? null : job.open],
    ['created', `${relative(job.createdAt)} (${job.createdAt})`],
    ['deadline', job.endedAt === null ? relative(job.deadlineAt) : null],
    ['ended', job.endedAt && `${relative(job.endedAt)}, after ${between(job.createdAt, job.endedAt)}`],
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
