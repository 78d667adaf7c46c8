/** Jobnik's lists: a page with a total, or without a page the whole list; the oldest first. */
import type { StageView } from '../../protocol/jobs/jobs.ts'
import type { Page } from '../../protocol/tasks/tasks.ts'
import type { AskersEngine } from '../askers-engine.ts'
import { type Answer, good } from '../dialect.ts'
import { allItems, type Paging } from '../kit/pages.ts'
import { hasEnded, stageBody, taskBody } from './views.ts'

export interface PageQuery {
  readonly page?: number
  readonly page_size?: number
}

const defaultSize = 10
const longestList = 10_000

export const wholeList = <Item>(find: (paging: Paging) => Promise<Page<Item>>) => allItems(find, longestList)

export async function listed<Item>(
  query: PageQuery,
  find: (paging: Paging) => Promise<Page<Item>>,
  bodies: (items: readonly Item[]) => Promise<readonly unknown[]>,
): Promise<Answer> {
  const { page = 1, page_size: limit = defaultSize } = query
  if (query.page === undefined && query.page_size === undefined) return good(await bodies(await wholeList(find)))
  const { items, total } = await find({ limit, offset: (page - 1) * limit, total: true })
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
  engine: AskersEngine,
  stages: readonly StageView[],
  { withTasks = false }: { readonly withTasks?: boolean } = {},
) {
  const open = stages.filter(stage => !hasEnded(stage)).map(({ id }) => id)
  const counts = await engine.taskCounts(open)
  const bodies: (ReturnType<typeof stageBody> & { tasks?: ReturnType<typeof taskBody>[] })[] = []
  for (const stage of stages) {
    const body = stageBody(stage, counts.get(stage.id))
    if (!withTasks) bodies.push(body)
    else bodies.push({ ...body, tasks: (await tasksOf(engine, stage.id)).map(taskBody) })
  }
  return bodies
}

const tasksOf = (engine: AskersEngine, stageId: string) =>
  wholeList(paging => engine.tasks({ ...paging, stageId, order: 'oldest' }))
