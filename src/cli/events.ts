/** Events, a line each. */

import { sanitizeJson } from '../kernel/sanitize.ts'
import type { EventView } from '../protocol/tasks/tasks.ts'
import { type Line, styled } from './line.ts'
import { causeOf, type Entity, stateOf } from './states.ts'
import { type Column, table } from './table.ts'

const errorOf = ({ payload }: EventView) => (payload.error as { message?: string } | undefined)?.message

const whyOf = (event: EventView): string => [causeOf(event.cause), errorOf(event)].filter(Boolean).join(': ')

/** Another system may have no word for it. */
const typeOf = ({ type }: { readonly type: string | null }) => type ?? '–'

const columns: readonly Column<EventView>[] = [
  { head: 'SEQ', of: ({ seq }) => String(seq), align: 'right' },
  { head: 'TIME', of: ({ ts }) => ts, least: 24 },
  { head: 'EVENT', of: typeOf, least: 12 },
  { head: 'BY', of: ({ actor }) => actor, spare: true },
  { head: 'WHY', of: whyOf, least: 10 },
  { head: 'MORE', of: ({ payload }) => (Object.keys(payload).length === 0 ? '' : sanitizeJson(payload)), spare: true },
]

export function eventLines(events: readonly EventView[], width: number): Line[] {
  return events.length === 0 ? ['Nothing happened.'] : table(events, columns, width)
}

/** For a stream, where no column can know how wide it will have to be. */
export function eventLine(event: EventView): Line {
  const why = whyOf(event)
  return [
    styled('dim', event.ts.slice(11, 23)),
    ` ${event.entityId.slice(-8)} `,
    stateOf(event.entity as Entity, event.to).style === 'dim'
      ? typeOf(event)
      : { ...stateOf(event.entity as Entity, event.to), text: typeOf(event) },
    styled('dim', ` by ${event.actor}`),
    why === '' ? '' : ` ${why}`,
  ]
}
