import type { Page } from '../../src/protocol/tasks/tasks.ts'

interface Asked {
  readonly limit: number
  readonly offset?: number
}

/** A page with all its items. The server ends a page early if its items are large. */
export async function wholePage<Item>(
  read: (page: Asked & { readonly cursor?: string }) => Promise<Page<Item>>,
  { limit, ...first }: Asked,
): Promise<Page<Item>> {
  let page = await read({ limit, ...first })
  const items = [...page.items]
  while (page.next !== null && items.length < limit) {
    page = await read({ limit: limit - items.length, cursor: page.next })
    items.push(...page.items)
  }
  return { ...page, items }
}
