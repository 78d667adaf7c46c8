/** Lists as Jobnik has them: by page with a total, or, without one, whole; the oldest first. */
import { Problem } from '../../kernel/problem.ts'
import type { StageView } from '../../protocol/jobs/jobs.ts'
import type { Page, TaskView } from '../../protocol/tasks/tasks.ts'
import type { AskersEngine } from '../askers-engine.ts'
import { type Answer, good } from '../dialect.ts'
import { hasEnded, type StageBody, stageBody, taskBody } from './bodies.ts'

export interface PageQuery {
  readonly page?: number
  readonly page_size?: number
}

export interface Paging {
  readonly limit: number
  readonly offset?: number
  readonly total?: boolean
  readonly cursor?: string
}

const usualSize = 10
/** A list that is asked for whole is held in memory whole. */
const mostWhole = 10_000
const pageSize = 1000

export async function listed<Item>(
  query: PageQuery,
  find: (paging: Paging) => Promise<Page<Item>>,
  bodies: (items: readonly Item[]) => Promise<readonly unknown[]>,
): Promise<Answer> {
  const { page = 1, page_size: limit = usualSize } = query
  if (query.page === undefined && query.page_size === undefined) return good(await bodies(await whole(find)))
  const { items, total } = await find({ limit, offset: (page - 1) * limit, total: true })
  return good({ total, items: await bodies(items) })
}

/** A list that is here already. */
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

export async function whole<Item>(find: (paging: Paging) => Promise<Page<Item>>): Promise<Item[]> {
  const all: Item[] = []
  for (let cursor: string | undefined; ; ) {
    const { items, next } = await find({ limit: pageSize, ...(cursor !== undefined && { cursor }) })
    all.push(...items)
    if (next === null) return all
    if (all.length >= mostWhole) {
      const must = `ask for less, or for a page: there are more than ${mostWhole.toLocaleString('en')}`
      throw new Problem('OPTION_INVALID', { option: 'query', must })
    }
    cursor = next
  }
}

/** Stages with their summaries, which are counted at once for all that have not ended. */
export async function stageBodies(
  engine: AskersEngine,
  stages: readonly StageView[],
  { withTasks = false }: { readonly withTasks?: boolean } = {},
): Promise<StageBody[]> {
  const open = stages.filter(stage => !hasEnded(stage)).map(({ id }) => id)
  const counts = await engine.taskCounts(open)
  const bodies = stages.map(stage => stageBody(stage, counts.get(stage.id)))
  if (!withTasks) return bodies
  const filled: StageBody[] = []
  for (const body of bodies) filled.push({ ...body, tasks: (await tasksOf(engine, body.id)).map(taskBody) })
  return filled
}

function tasksOf(engine: AskersEngine, stageId: string): Promise<TaskView[]> {
  return whole(paging => engine.tasks({ ...paging, stageId, order: 'oldest' }))
}
