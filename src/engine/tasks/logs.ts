/** What handlers say while they work: taken in with beats and reports, and read a page at a time. */
import { Problem } from '../../kernel/problem.ts'
import { logQueryFields } from '../../protocol/query-fields.ts'
import {
  fitLine,
  type LogLevel,
  type LogLine,
  type LogPage,
  type LogQuery,
  logLimits,
} from '../../protocol/tasks/logs.ts'
import type { HeldTask } from '../../protocol/tasks/sync.ts'
import { type NewLogLine, readLogLines, writeLogLines } from '../../store/tasks/logs.ts'
import { checkId, checkOptions } from '../check.ts'
import type { Context } from '../context.ts'
import { decode, encode } from '../cursor.ts'
import { logCorrelated } from '../log-correlated.ts'
import { splitting } from '../split.ts'
import { readTask } from './read-tasks.ts'

/** Lines of an item that was checked. What an attempt says beyond its limit is not kept; one line may tell of that. */
export function linesOf({ id, epoch, logs = [] }: HeldTask & { readonly logs?: readonly LogLine[] }): NewLogLine[] {
  const few = logs.filter(({ n }) => n <= logLimits.lines + 1)
  return few.map(said => {
    const { n, agoMs = 0, level = 'info', message, facts } = fitLine(said).line
    return { id: id.toLowerCase(), epoch, n, agoMs, level, message, facts }
  })
}

const linesPerStatement = 2000

/**
 * Before what the same sync settles, for a line counts only while its task is held. A line that the store cannot take
 * is dropped and told: it must never cost the result that it came with.
 */
export async function keepLines(context: Context, lines: readonly NewLogLine[]): Promise<void> {
  for (let from = 0; from < lines.length; from += linesPerStatement) {
    await splitting<NewLogLine, void>(
      lines.slice(from, from + linesPerStatement),
      async some => {
        await writeLogLines(context.sql, some)
        return []
      },
      ({ id, epoch, n }, error) =>
        void logCorrelated(
          context,
          'task.line_dropped',
          { entity: 'task', id },
          { id, epoch, n, error: String(error) },
        ),
    )
  }
}

const isInt4 = (value: unknown) => Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 31

/**
 * Attempt by attempt, in the order in which the lines were said. Whoever reads on from `behind` misses none: a worker
 * sends a line again, with those after it, until it is heard, and an attempt says nothing more once the next has begun.
 */
export async function readLogs(context: Context, id: string, query: LogQuery = {}): Promise<LogPage> {
  checkOptions(query, logQueryFields, 'logs')
  const { limit = 1000, epoch = null } = query
  await readTask(context, id)
  const after =
    query.cursor === undefined ? { epoch: 0, n: 0 } : decode<{ epoch: number; n: number }>(query.cursor, 'n')
  if (![after.epoch, after.n].every(isInt4)) {
    throw new Problem('CURSOR_INVALID', { cursor: query.cursor })
  }
  const rows = await readLogLines(context.sql, { id: checkId(id), epoch, after, limit: limit + 1 })
  const items = rows.slice(0, limit).map(row => ({ ...row, at: row.at.toISOString(), level: row.level as LogLevel }))
  const { epoch: lastEpoch, n } = items.at(-1) ?? after
  const behind = encode({ epoch: lastEpoch, n })
  return { items, next: rows.length > limit ? behind : null, behind }
}
