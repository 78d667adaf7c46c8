import type { PawlApi } from '../../protocol/api.ts'
import type { LogLineView, LogQuery } from '../../protocol/logs.ts'
import { said } from '../asking.ts'
import { apiCommand } from '../command.ts'
import { findTaskId } from '../find-id.ts'
import { type Line, type Style, styled } from '../line.ts'
import { pause } from '../patience.ts'
import { hasEnded } from '../states.ts'
import { harmlessJson } from '../text.ts'

const lookMs = 500
const styles: Readonly<Record<LogLineView['level'], Style>> = {
  debug: 'dim',
  info: 'cyan',
  warn: 'yellow',
  error: 'red',
}

export const taskLogs = apiCommand({
  name: 'task logs',
  says: 'Show what the handler of a task has logged.',
  more: 'With --json and -f there is one document to a line.',
  takes: { id: 'the task, or the beginning or the end of its id' },
  flags: {
    follow: { kind: 'switch', short: 'f', says: 'go on until the task has ended' },
    attempt: { kind: 'number', value: 'N', says: 'only of this attempt' },
  },
  async run({ api, args, flags, screen, json, untilTold }) {
    const id = await findTaskId(api, args.id)
    const lines = linesAfter(api, id, said({ epoch: flags.attempt }))
    if (!flags.follow) {
      const all = await lines()
      return { data: all, show: () => (all.length === 0 ? ['It has logged nothing.'] : all.map(logLine)) }
    }
    const told = untilTold()
    for (;;) {
      // Looked at first: what it logged before its end is there by then.
      const { state } = await api.task(id)
      for (const line of await lines()) json ? screen.jsonLine(line) : screen.say(logLine(line))
      if (hasEnded('task', state) || told.aborted) return { data: undefined }
      await pause(lookMs, told)
    }
  },
})

/** Each call answers with the lines that came since the last. */
function linesAfter(api: PawlApi, id: string, query: LogQuery): () => Promise<LogLineView[]> {
  let last = { epoch: 0, n: 0 }
  return async () => {
    const lines: LogLineView[] = []
    for (let cursor: string | undefined; ; ) {
      const page = await api.logs(id, { ...query, ...(cursor !== undefined && { cursor }) })
      lines.push(...page.items)
      if (page.next === null) break
      cursor = page.next
    }
    const fresh = lines.filter(({ epoch, n }) => epoch > last.epoch || (epoch === last.epoch && n > last.n))
    last = fresh.at(-1) ?? last
    return fresh
  }
}

function logLine({ at, level, epoch, message, facts }: LogLineView): Line {
  return [
    styled('dim', `${at.slice(11, 23)} ${epoch} `),
    styled(styles[level], level.padEnd(5)),
    ` ${message}`,
    facts === null ? '' : styled('dim', ` ${harmlessJson(facts)}`),
  ]
}
