/** Log lines of handlers: stored with heartbeats and reports, and read by page. */
import { Problem } from '../../kernel/problem.ts'
import {
  fitLine,
  type LogLevel,
  type LogLine,
  type LogPage,
  type LogQuery,
  logLimits,
  logQueryFields,
} from '../../protocol/tasks/logs.ts'
import type { HeldTask } from '../../protocol/tasks/sync.ts'
import { type NewLogLine, readLogLines, writeLogLines } from '../../store/tasks/logs.ts'
import { checkId, checkOptions, decode, encode } from '../check.ts'
import { type Context, logCorrelated } from '../context.ts'
import { splitOnFailure } from '../retry.ts'
import { readTask } from './read-tasks.ts'

/** Log lines of a validated item. Lines beyond the limit of an attempt are dropped, except one that may say so. */
export function logLinesOf({ id, epoch, logs = [] }: HeldTask & { readonly logs?: readonly LogLine[] }): NewLogLine[] {
  const withinLimit = logs.filter(({ n }) => n <= logLimits.lines + 1)
  return withinLimit.map(line => {
    const { n, agoMs = 0, level = 'info', message, facts } = fitLine(line).line
    return { id: id.toLowerCase(), epoch, n, agoMs, level, message, facts }
  })
}

const linesPerStatement = 2000

/**
 * Runs before the settles of the same sync, because lines are accepted only while their task is held. If the store
 * cannot take a line, it is dropped and logged: it must never cost the result that it came with.
 */
export async function storeLogLines(context: Context, lines: readonly NewLogLine[]): Promise<void> {
  for (let from = 0; from < lines.length; from += linesPerStatement) {
    await splitOnFailure<NewLogLine, void>(
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
 * Lines by attempt, in the order they were logged. Reading on from `behind` misses no line: a worker sends a line, and
 * those after it, until they are acknowledged, and an attempt logs nothing once the next has begun.
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
