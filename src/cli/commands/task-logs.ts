import { sanitizeJson } from '../../kernel/sanitize.ts'
import { withoutUndefined } from '../../kernel/without-undefined.ts'
import type { PawlApi } from '../../protocol/operations.ts'
import type { LogLineView, LogQuery } from '../../protocol/tasks/logs.ts'
import { apiCommand } from '../command.ts'
import { findTaskId, taskParameter } from '../find-id.ts'
import { hasEnded } from '../states.ts'
import { type Line, type Style, styled } from '../styled-line.ts'
import { type FollowOptions, pause, retryUntilAvailable } from '../waiting.ts'

const pollMs = 500
const styles: Readonly<Record<LogLineView['level'], Style>> = {
  debug: 'dim',
  info: 'cyan',
  warn: 'yellow',
  error: 'red',
}

export const taskLogs = apiCommand({
  name: 'task logs',
  summary: 'Show the log of a task.',
  details: 'With --json and -f, prints one JSON document per line.',
  parameters: taskParameter,
  completes: 'task',
  flags: {
    follow: { kind: 'switch', short: 'f', summary: 'follow the log until the task has ended' },
    attempt: { kind: 'number', value: 'N', summary: 'only this attempt' },
  },
  async run({ api, args, flags, output, json, stopSignal }) {
    const id = await findTaskId(api, args.id)
    const query: LogQuery = withoutUndefined({ epoch: flags.attempt })
    if (!flags.follow) {
      const { lines } = await linesAfter(api, id, query)
      return {
        data: lines,
        show: () => (lines.length === 0 ? ['The task has not logged anything.'] : lines.map(logLine)),
      }
    }
    const print = (line: LogLineView) => (json ? output.printJsonLine(line) : output.print(logLine(line)))
    await follow(api, id, query, { output, signal: stopSignal(), print })
    return { data: undefined }
  },
})

/** Prints lines only after a read has succeeded as a whole, so that a read can be repeated. */
async function follow(api: PawlApi, id: string, query: LogQuery, options: FollowOptions<LogLineView>): Promise<void> {
  const { signal, print } = options
  for (let cursor: string | undefined; ; await pause(pollMs, signal)) {
    const found = await retryUntilAvailable(async () => {
      // The state is read first: if the task has ended, the lines that follow are complete.
      const { state } = await api.task(id)
      return { state, ...(await linesAfter(api, id, query, cursor)) }
    }, options)
    if (found === undefined) return
    for (const line of found.lines) print(line)
    cursor = found.behind
    if (hasEnded('task', found.state)) return
  }
}

/** Reads all lines after a cursor. Returns them with the cursor after the last one. */
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
