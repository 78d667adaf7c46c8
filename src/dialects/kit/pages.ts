/** Reads lists of any length from the engine, page by page. */
import { Problem } from '../../kernel/problem.ts'
import type { Page, TaskView } from '../../protocol/tasks/tasks.ts'
import type { DialectEngine } from '../dialect-engine.ts'

/** The longest page that the engine gives. */
export const longestPage = 1000

export interface Paging {
  readonly limit: number
  readonly offset?: number
  readonly total?: boolean
  readonly cursor?: string
}

/** The most that a list may have that is answered as a whole: it is held in memory. */
const mostBytes = 64 * 2 ** 20

/** Counts what an answer is made of, and refuses the request if it is too much. */
export type CountBytes = (items: readonly unknown[]) => void

/** A limit for one answer. Share it between the lists that are parts of the same answer. */
export function answerLimit(): CountBytes {
  let bytes = 0
  return items => {
    bytes += JSON.stringify(items).length
    if (bytes > mostBytes) throw tooLong('the answer would have over 64 MiB')
  }
}

/**
 * All items of a list. It is refused if it has more than `most` items, or is too large. `shared`: the limit of an answer
 * that contains more than this list.
 */
export async function allItems<Item>(
  find: (paging: Paging) => Promise<Page<Item>>,
  most = Number.POSITIVE_INFINITY,
  shared?: CountBytes,
): Promise<Item[]> {
  const all: Item[] = []
  const count = shared ?? answerLimit()
  for (let cursor: string | undefined; ; ) {
    const { items, next } = await find({ limit: longestPage, ...(cursor !== undefined && { cursor }) })
    all.push(...items)
    // A list that fits into a page is not too large by itself.
    if (next === null && shared === undefined) return all
    count(items)
    if (next === null) return all
    if (all.length >= most) throw tooLong(`there are more than ${most.toLocaleString('en')}`)
    cursor = next
  }
}

const tooLong = (why: string) =>
  new Problem('OPTION_INVALID', { option: 'query', must: `ask for less, or for a page: ${why}` })

/** The page that starts at `offset`, with `limit` items unless the list ends. The engine cuts pages of large items. */
export async function wholePage<Item>(
  find: (paging: Paging) => Promise<Page<Item>>,
  { limit, ...first }: Paging,
): Promise<Page<Item>> {
  const page = await find({ limit, ...first })
  const items = [...page.items]
  const count = answerLimit()
  let last = page
  while (last.next !== null && items.length < limit) {
    count(last.items)
    last = await find({ limit: limit - items.length, cursor: last.next })
    items.push(...last.items)
  }
  return { ...page, items, next: last.next }
}

/**
 * Facts of the tasks with these ids, by id. Those that are gone are left out. The tasks are read page by page, so only
 * the facts are held in memory.
 */
export async function factsOfTasks<Fact>(
  engine: DialectEngine,
  ids: readonly string[],
  factOf: (task: TaskView) => Fact,
): Promise<Map<string, Fact>> {
  const found = new Map<string, Fact>()
  for (let from = 0; from < ids.length; from += longestPage) {
    const asked = ids.slice(from, from + longestPage)
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const paging = { limit: longestPage, ...(cursor !== undefined && { cursor }) }
      const { items, next } = await engine.tasks({ ids: asked, ...paging })
      for (const task of items) found.set(task.id, factOf(task))
      cursor = next
    }
  }
  return found
}
