/** Reads lists of any length from the engine, page by page. */
import { Problem } from '../../kernel/problem.ts'
import type { Page, TaskView } from '../../protocol/tasks/tasks.ts'
import type { AskersEngine } from '../askers-engine.ts'

/** The longest page that the engine gives. */
export const longestPage = 1000

export interface Paging {
  readonly limit: number
  readonly offset?: number
  readonly total?: boolean
  readonly cursor?: string
}

/** All items of a list, which is refused if it is longer than `most`: the whole list is held in memory. */
export async function allItems<Item>(
  find: (paging: Paging) => Promise<Page<Item>>,
  most = Number.POSITIVE_INFINITY,
): Promise<Item[]> {
  const all: Item[] = []
  for (let cursor: string | undefined; ; ) {
    const { items, next } = await find({ limit: longestPage, ...(cursor !== undefined && { cursor }) })
    all.push(...items)
    if (next === null) return all
    if (all.length >= most) {
      const must = `ask for less, or for a page: there are more than ${most.toLocaleString('en')}`
      throw new Problem('OPTION_INVALID', { option: 'query', must })
    }
    cursor = next
  }
}

/** The tasks with these ids, in the order of the ids. Those that are gone are left out. */
export async function tasksById(engine: AskersEngine, ids: readonly string[]): Promise<TaskView[]> {
  const found = new Map<string, TaskView>()
  for (let from = 0; from < ids.length; from += longestPage) {
    const { items } = await engine.tasks({ ids: ids.slice(from, from + longestPage), limit: longestPage })
    for (const task of items) found.set(task.id, task)
  }
  return ids.flatMap(id => found.get(id) ?? [])
}
