/** Buffers the log lines of a handler until the engine has them. The buffer is bounded. */
import { fitLine, type LogLevel, type LogLine, logLevels, logLimits } from '../protocol/tasks/logs.ts'

type WriteLine = (message: string, facts?: Record<string, unknown>) => void

/** `log(…)` is the same as `log.info(…)`. */
export type TaskLogger = WriteLine & Readonly<Record<LogLevel, WriteLine>>

const linesPerBeat = 100

export type TaskLog = ReturnType<typeof makeTaskLog>

export function makeTaskLog(isOpen: () => boolean) {
  let waiting: { line: LogLine; at: number; bytes: number }[] = []
  let count = 0
  let size = 0
  let dropped = 0

  const makeWriter = (level: LogLevel): WriteLine => {
    return (message, facts) => {
      if (!isOpen()) return
      if (count === logLimits.lines || size >= logLimits.bytes) {
        dropped += 1
        return
      }
      const { line, bytes } = fitLine({ n: ++count, level, message, ...(facts !== undefined && { facts }) })
      size += bytes
      waiting.push({ line, at: performance.now(), bytes })
    }
  }
  const dated = (now: number, some: typeof waiting) => some.map(({ line, at }) => ({ ...line, agoMs: now - at }))
  const [debug, info, warn, error] = logLevels.map(makeWriter) as [WriteLine, WriteLine, WriteLine, WriteLine]
  return {
    logger: Object.assign(info, { debug, info, warn, error }) as TaskLogger,
    /** The next unacknowledged lines, or undefined if there are none. */
    unsent: (now: number): LogLine[] | undefined =>
      waiting.length === 0 ? undefined : dated(now, waiting.slice(0, linesPerBeat)),
    /** All remaining lines and the number of dropped ones. Sent with the report, after which no lines are accepted. */
    last(now: number): LogLine[] {
      const lines = dated(now, waiting)
      return dropped === 0 ? lines : [...lines, lineOnDropped(count + 1, dropped)]
    },
    /** Removes lines that the engine has acknowledged. */
    acknowledge(lines: readonly LogLine[]): void {
      const upTo = lines.at(-1)?.n ?? 0
      waiting = waiting.filter(({ line }) => line.n > upTo)
    },
    /** How long the oldest unsent line has waited. */
    waitedMs: (now: number): number => (waiting.length === 0 ? 0 : now - waiting[0]!.at),
    /** Size of the unsent lines. */
    bytes: (): number => waiting.reduce((sum, { bytes }) => sum + bytes, 0),
  }
}

function lineOnDropped(n: number, dropped: number): LogLine {
  const { lines, bytes } = logLimits
  const limit = `an attempt keeps ${lines} lines and ${bytes / 1024} KiB`
  return { n, agoMs: 0, level: 'warn', message: `${dropped} more lines were dropped: ${limit}.`, facts: { dropped } }
}
