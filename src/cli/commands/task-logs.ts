import { sanitizeJson } from '../../kernel/sanitize.ts'
import type { PawlApi } from '../../protocol/api.ts'
import type { LogLineView, LogQuery } from '../../protocol/tasks/logs.ts'
import { said } from '../asking.ts'
import { apiCommand } from '../command.ts'
import { findTaskId } from '../find-id.ts'
import { type Line, type Style, styled } from '../line.ts'
import { patiently, pause, type Waiting } from '../patience.ts'
import { hasEnded } from '../states.ts'

const lookMs = 500
const styles: Readonly<Record<LogLineView['level'], Style>> = {
  debug: 'dim',
  info: 'cyan',
  warn: 'yellow',
  error: 'red',
}

export const taskLogs = apiCommand({
  name: 'task logs',
  summary: 'Show the log of a task.',
  more: 'With --json and -f there is one document to a line.',
  takes: { id: 'the task, or the beginning or the end of its id' },
  flags: {
    follow: { kind: 'switch', short: 'f', summary: 'follow the log until the task has ended' },
    attempt: { kind: 'number', value: 'N', summary: 'only this attempt' },
  },
  async run({ api, args, flags, screen, json, untilTold }) {
    const id = await findTaskId(api, args.id)
    const query: LogQuery = said({ epoch: flags.attempt })
    if (!flags.follow) {
      const { lines } = await linesAfter(api, id, query)
      return { data: lines, show: () => (lines.length === 0 ? ['It has logged nothing.'] : lines.map(logLine)) }
    }
    const tell = (line: LogLineView) => (json ? screen.jsonLine(line) : screen.say(logLine(line)))
    await follow(api, id, query, { screen, signal: untilTold(), tell })
    return { data: undefined }
  },
})

interface Following extends Waiting {
  tell(line: LogLineView): void
}

/** A look may be repeated, for what it found is told only when all of it has come. */
async function follow(api: PawlApi, id: string, query: LogQuery, following: Following): Promise<void> {
  const { signal, tell } = following
  for (let cursor: string | undefined; ; await pause(lookMs, signal)) {
    const found = await patiently(async () => {
      // Looked at first: what it logged before its end is there by then.
      const { state } = await api.task(id)
      return { state, ...(await linesAfter(api, id, query, cursor)) }
    }, following)
    if (found === undefined) return
    for (const line of found.lines) tell(line)
    cursor = found.behind
    if (hasEnded('task', found.state)) return
  }
}

/** All lines behind a cursor, and the cursor behind them. */
async function linesAfter(
  api: PawlApi,
  id: string,
  query: LogQuery,
  from?: string,
): Promise<{ lines: LogLineView[]; behind: string }> {
  const lines: LogLineView[] = []
  for (let cursor = from; ; ) {
    const { items, next, behind } = await api.logs(id, { ...query, ...(cursor !== undefined && { cursor }) })
    lines.push(...items)
    if (next === null) return { lines, behind }
    cursor = next
  }
}

function logLine({ at, level, epoch, message, facts }: LogLineView): Line {
  return [
    styled('dim', `${at.slice(11, 23)} ${epoch} `),
    styled(styles[level], level.padEnd(5)),
    ` ${message}`,
    facts === null ? '' : styled('dim', ` ${sanitizeJson(facts)}`),
  ]
}
