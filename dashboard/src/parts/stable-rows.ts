/** Keeps rows in place while the pointer is over a list. New rows wait, so that a click cannot hit another row. */
import { useRef, useState } from 'react'

export interface StableRows<Item> {
  readonly items: readonly Item[]
  /** Number of added or removed rows that are not shown yet. */
  readonly pending: number
  showNow(): void
  /** Handlers for the element that contains the list. */
  readonly pointerHandlers: { onPointerEnter(): void; onPointerLeave(): void }
}

/** `query` identifies what the items are for. Items of another query are shown at once, wherever the pointer is. */
export function useStableRows<Item extends { readonly id: string }>(
  current: readonly Item[],
  query = '',
): StableRows<Item> {
  const [isOver, setOver] = useState(false)
  const [, refresh] = useState(0)
  const kept = useRef<readonly Item[]>(current)
  const answered = useRef(query)
  if (!isOver || answered.current !== query) kept.current = current
  answered.current = query
  const byId = new Map(current.map(item => [item.id, item]))
  const shown = kept.current.map(item => byId.get(item.id) ?? item)
  const known = new Set(shown.map(({ id }) => id))
  const added = current.filter(({ id }) => !known.has(id)).length
  const removed = shown.filter(({ id }) => !byId.has(id)).length
  return {
    items: shown,
    pending: added + removed,
    showNow() {
      kept.current = current
      refresh(turn => turn + 1)
    },
    pointerHandlers: { onPointerEnter: () => setOver(true), onPointerLeave: () => setOver(false) },
  }
}
