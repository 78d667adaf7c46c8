/** Nothing jumps under the pointer: while it is over a list, the rows stay where they are, and new ones wait. */
import { useRef, useState } from 'react'

export interface Still<Item> {
  readonly items: readonly Item[]
  /** How many rows came or went that are not shown yet. */
  readonly waiting: number
  showNow(): void
  /** For what holds the list. */
  readonly watch: { onPointerEnter(): void; onPointerLeave(): void }
}

/** `question`: what the items answer. Those that answer another one are shown at once, wherever the pointer is. */
export function useStill<Item extends { readonly id: string }>(current: readonly Item[], question = ''): Still<Item> {
  const [isOver, setOver] = useState(false)
  const [, look] = useState(0)
  const kept = useRef<readonly Item[]>(current)
  const answered = useRef(question)
  if (!isOver || answered.current !== question) kept.current = current
  answered.current = question
  const byId = new Map(current.map(item => [item.id, item]))
  const shown = kept.current.map(item => byId.get(item.id) ?? item)
  const known = new Set(shown.map(({ id }) => id))
  const came = current.filter(({ id }) => !known.has(id)).length
  const went = shown.filter(({ id }) => !byId.has(id)).length
  return {
    items: shown,
    waiting: came + went,
    showNow() {
      kept.current = current
      look(turn => turn + 1)
    },
    watch: { onPointerEnter: () => setOver(true), onPointerLeave: () => setOver(false) },
  }
}
