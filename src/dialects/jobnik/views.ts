/** Jobs, stages and tasks as Jobnik shows them, their JSON Schemas, and lists of them. */
import { isFinal } from '../../kernel/lifecycle.ts'
import { defaultSettings } from '../../kernel/settings.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import type { TaskState } from '../../kernel/task.ts'
import type { JobView, StageView, TaskCounts } from '../../protocol/jobs/jobs.ts'
import { at, id, list, object, text, view, whole, words as wordsOf } from '../../protocol/shapes.ts'
import type { Page, TaskView } from '../../protocol/tasks/tasks.ts'
import { isObject, type Schema } from '../../schema/check.ts'
import { type Answer, good } from '../dialect.ts'
import type { DialectEngine } from '../dialect-engine.ts'
import { allItems, answerLimit, type CountBytes, type Paging, wholePage } from '../kit/pages.ts'
import { jobWord, jobWords, priorityFor, priorityWords, stageWord, stageWords, taskWord, taskWords } from './words.ts'

const noTrace = `00-${'0'.repeat(32)}-${'0'.repeat(16)}-00`
/** The stage of a standalone task, which Jobnik does not have. */
const noStage = '00000000-0000-0000-0000-000000000000'

export function taskBody(task: TaskView) {
  const { startedAt, endedAt } = task
  return {
    id: task.id,
    data: dataIn(task.payload),
    stageId: task.stageId ?? noStage,
    status: taskWord(task.state),
    attempts: task.failures,
    maxAttempts: task.settings.retry?.attempts ?? defaultSettings.attempts,
    traceparent: task.traceparent ?? noTrace,
    userMetadata: task.metadata,
    creationTime: task.createdAt,
    updateTime: task.changedAt,
    ...(startedAt !== null && { startTime: startedAt }),
    ...(endedAt !== null && { endTime: endedAt }),
  }
}

export const taskSchema = view<ReturnType<typeof taskBody>>(
  {
    id,
    data: object,
    stageId: id,
    status: wordsOf(...taskWords),
    attempts: whole,
    maxAttempts: whole,
    traceparent: text,
    userMetadata: object,
    creationTime: at,
    updateTime: at,
    startTime: at,
    endTime: at,
  },
  ['startTime', 'endTime'],
)

/** `counts`: the stage's tasks by state, if it has not ended. */
export function stageBody(stage: StageView, counts: TaskCounts | undefined) {
  const summary = summaryOf(stage, counts)
  return {
    id: stage.id,
    type: stage.queue,
    data: dataIn(stage.data),
    summary,
    jobId: stage.jobId,
    order: stage.ordinal + 1,
    traceparent: stage.traceparent ?? noTrace,
    userMetadata: stage.metadata,
    percentage: percentageOf(summary.completed, summary.total),
    status: stageWord(stage),
  }
}

/** The counts of a stage that has ended are final, so its tasks need not be counted. */
const hasEnded = ({ state }: StageView) => isFinal(stageLifecycle, state)

function summaryOf(stage: StageView, counts: TaskCounts = {}) {
  const { total, good, bad } = stage.progress
  const none = { pending: 0, inProgress: 0, completed: 0, failed: 0, created: 0, retried: 0 }
  if (hasEnded(stage)) return { ...none, completed: good, failed: bad, total }
  const countOf = (word: string) =>
    Object.entries(counts).reduce((sum, [state, tasks]) => sum + (taskWord(state as TaskState) === word ? tasks : 0), 0)
  const found = {
    pending: countOf('PENDING'),
    inProgress: countOf('IN_PROGRESS'),
    completed: countOf('COMPLETED'),
    failed: countOf('FAILED'),
    created: 0,
    retried: countOf('RETRIED'),
  }
  return { ...found, total: Object.values(found).reduce((sum, tasks) => sum + tasks, 0) }
}

export const summarySchema = view<ReturnType<typeof summaryOf>>({
  pending: whole,
  inProgress: whole,
  completed: whole,
  failed: whole,
  created: whole,
  retried: whole,
  total: whole,
})

const percentage = { type: 'integer', minimum: 0, maximum: 100 }

export const stageSchema = view<ReturnType<typeof stageBody> & { tasks?: unknown }>(
  {
    id,
    type: text,
    data: object,
    summary: summarySchema,
    jobId: id,
    order: { type: 'integer', minimum: 1 },
    traceparent: text,
    userMetadata: object,
    percentage,
    status: wordsOf(...stageWords),
    tasks: list(taskSchema),
  },
  ['tasks'],
)

export const workOf = ({ stages }: JobView) => stages.filter(({ kind }) => kind === 'work')

export function jobBody(job: JobView, stages?: readonly ReturnType<typeof stageBody>[]) {
  const work = workOf(job)
  const completed = work.filter(stage => stageWord(stage) === 'COMPLETED').length
  return {
    id: job.id,
    name: job.name,
    data: dataIn(job.input),
    userMetadata: job.metadata,
    traceparent: job.traceparent ?? noTrace,
    ...(job.tracestate !== null && { tracestate: job.tracestate }),
    status: jobWord(job),
    percentage: percentageOf(completed, work.length),
    creationTime: job.createdAt,
    updateTime: job.changedAt,
    priority: priorityFor(job.priority),
    ...(stages !== undefined && { stages }),
  }
}

export const jobSchema = view<ReturnType<typeof jobBody>>(
  {
    id,
    name: text,
    data: object,
    userMetadata: object,
    traceparent: text,
    tracestate: text,
    status: wordsOf(...jobWords),
    percentage,
    creationTime: at,
    updateTime: at,
    priority: wordsOf(...priorityWords),
    stages: list(stageSchema),
  },
  ['tracestate', 'stages'],
)

const percentageOf = (part: number, total: number) => (total === 0 ? 0 : Math.floor((100 * part) / total))

/** Data is always an object in Jobnik. A job that was submitted in another way may have any value. */
function dataIn(value: unknown): Record<string, unknown> {
  if (isObject(value)) return value
  return value === null || value === undefined ? {} : { value }
}

/** A page, or without a page the list itself. */
export const listedSchema = (items: Schema): Schema => ({
  anyOf: [list(items), view<{ total: number; items: unknown }>({ total: whole, items: list(items) })],
})

export const faultSchema = view<{ message: string; code: string }>({ message: text, code: text })

export interface PageQuery {
  readonly page?: number
  readonly page_size?: number
}

const defaultSize = 10
const longestList = 10_000

export const wholeList = <Item>(find: (paging: Paging) => Promise<Page<Item>>, shared?: CountBytes) =>
  allItems(find, longestList, shared)

export async function listed<Item>(
  query: PageQuery,
  find: (paging: Paging) => Promise<Page<Item>>,
  bodies: (items: readonly Item[]) => Promise<readonly unknown[]>,
): Promise<Answer> {
  const { page = 1, page_size: limit = defaultSize } = query
  if (query.page === undefined && query.page_size === undefined) return good(await bodies(await wholeList(find)))
  const { items, total } = await wholePage(find, { limit, offset: (page - 1) * limit, total: true })
  return good({ total, items: await bodies(items) })
}

/** A list that has been read already. */
export function sliced<Item>(
  query: PageQuery,
  items: readonly Item[],
  bodies: (items: readonly Item[]) => Promise<readonly unknown[]>,
): Promise<Answer> {
  return listed(
    query,
    async ({ limit, offset = 0, total }) =>
      total === true
        ? { items: items.slice(offset, offset + limit), next: null, total: items.length }
        : { items: [...items], next: null },
    bodies,
  )
}

/** Stages with their summaries. One query counts the tasks of all stages that have not ended. */
export async function stageBodies(
  engine: DialectEngine,
  stages: readonly StageView[],
  { withTasks = false }: { readonly withTasks?: boolean } = {},
) {
  const open = stages.filter(stage => !hasEnded(stage)).map(({ id }) => id)
  const counts = await engine.taskCounts(open)
  const bodies: (ReturnType<typeof stageBody> & { tasks?: ReturnType<typeof taskBody>[] })[] = []
  const limit = answerLimit()
  for (const stage of stages) {
    const body = stageBody(stage, counts.get(stage.id))
    if (!withTasks) bodies.push(body)
    else if (body.summary.total === 0) bodies.push({ ...body, tasks: [] })
    else bodies.push({ ...body, tasks: (await tasksOf(engine, stage.id, limit)).map(taskBody) })
  }
  return bodies
}

const tasksOf = (engine: DialectEngine, stageId: string, limit: CountBytes) =>
  wholeList(paging => engine.tasks({ ...paging, stageId, order: 'oldest' }), limit)
