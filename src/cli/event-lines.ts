/** Events as lines of text. */

import { sanitizeJson } from '../kernel/sanitize.ts'
import type { EventView } from '../protocol/tasks/tasks.ts'
import { type Entity, readableCause, styledState } from './states.ts'
import { type Line, styled } from './styled-line.ts'
import { type Column, table } from './table.ts'

const errorOf = ({ payload }: EventView) => (payload.error as { message?: string } | undefined)?.message

const reasonOf = (event: EventView): string => [readableCause(event.cause), errorOf(event)].filter(Boolean).join(': ')

/** Null with --vocabulary, if the other system has no such event. */
const typeOf = ({ type }: { readonly type: string | null }) => type ?? '–'

const columns: readonly Column<EventView>[] = [
  { header: 'SEQ', value: ({ seq }) => String(seq), align: 'right' },
  { header: 'TIME', value: ({ ts }) => ts, minWidth: 24 },
  { header: 'EVENT', value: typeOf, minWidth: 12 },
  { header: 'BY', value: ({ actor }) => actor, optional: true },
  { header: 'REASON', value: reasonOf, minWidth: 10 },
  {
    header: 'DETAILS',
    value: ({ payload }) => (Object.keys(payload).length === 0 ? '' : sanitizeJson(payload)),
    optional: true,
  },
]

export function eventLines(events: readonly EventView[], width: number): Line[] {
  return events.length === 0 ? ['There are no events.'] : table(events, columns, width)
}

/** For a stream, where the widths of columns cannot be known in advance. */
export function eventLine(event: EventView): Line {
  const reason = reasonOf(event)
  return [
    styled('dim', event.ts.slice(11, 23)),
    ` ${event.entityId.slice(-8)} `,
    styledState(event.entity as Entity, event.to).style === 'dim'
      ? typeOf(event)
      : { ...styledState(event.entity as Entity, event.to), text: typeOf(event) },
    styled('dim', ` by ${event.actor}`),
    reason === '' ? '' : ` ${reason}`,
  ]
}
