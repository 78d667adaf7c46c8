/** What goes wrong in the background is told on stderr, a line each. */

import { styled } from './line.ts'
import type { Screen } from './screen.ts'
import { harmlessJson } from './text.ts'

/** Words that are no trouble: they are told nowhere. */
const quiet = new Set(['chore.done', 'worker.stopping', 'worker.stopped'])

export function logTo(screen: Screen) {
  return (word: string, facts: Record<string, unknown>): void => {
    if (!quiet.has(word)) screen.note([styled('yellow', word), ` ${harmlessJson(facts)}`])
  }
}
