import { Problem } from '../../kernel/problem.ts'
import { type EventView, type Page, type TaskEventQuery, taskEventFields } from '../../protocol/tasks/tasks.ts'
import { eventsAndPulses, type PulsePosition } from '../../store/feed/pulses.ts'
import { checkId, checkOptions } from '../check.ts'
import type { Context } from '../context.ts'
import { decode, encode } from '../cursor.ts'
import { isPlace, isSeq, readEventsOf, readTask } from './read-tasks.ts'
import { toEventView } from './task-view.ts'

/** Returns the events of one task, oldest first, with its heartbeats if requested. */
export async function readTaskEvents(
  context: Context,
  id: string,
  query: TaskEventQuery = {},
): Promise<Page<EventView>> {
  checkOptions(query, taskEventFields, 'events')
  const { pulses = false, ...page } = query
  if (!pulses) return readEventsOf(context, 'task', id, page)
  const { limit = 1000, cursor } = page
  const rows = await eventsAndPulses(context.sql, checkId(id), positionIn(cursor), limit + 1)
  if (rows.length === 0) await readTask(context, id)
  const shown = rows.slice(0, limit)
  const items = shown.map(({ us, ...row }) => toEventView(us === 0 ? row : { ...row, pulseUs: us }))
  const last = shown.at(-1)
  return { items, next: rows.length > limit ? encode({ seq: last!.seq, us: last!.us }) : null }
}

function positionIn(cursor: string | undefined): PulsePosition {
  if (cursor === undefined) return { seq: 0, us: 0 }
  const { seq, us = 0 } = decode<Partial<PulsePosition>>(cursor, 'seq')
  if (!isSeq(seq!) || !isPlace(us)) throw new Problem('CURSOR_INVALID', { cursor })
  return { seq: seq!, us }
}
