/**
 * Copies the stdout and stderr of a command to the log of its task. It holds little, however much the command writes:
 * the current line, up to a limit; the last lines; and counts of what was dropped.
 *
 * The first lines are logged immediately. After that only the last lines are kept. They are logged at the end, after a
 * line that says how many are missing, because the end usually shows why a program failed.
 */
import { storableText } from '../kernel/json.ts'
import { logLimits } from '../protocol/tasks/logs.ts'
import type { Mask } from './secrets.ts'

export type StreamName = 'stdout' | 'stderr'
type WriteLine = (message: string, facts: Record<string, unknown>) => void

export interface OutputLog {
  write(stream: StreamName, bytes: Buffer): void
  /** Logs the lines held back. Later output is ignored. */
  end(): void
  /** The last lines of stderr. */
  stderrTail(): string
}

/** Together less than the log of an attempt accepts, so that it never drops the last lines. */
const outputLimits = {
  lineBytes: 2000,
  head: { lines: 800, bytes: 160_000 },
  tail: { lines: 100, bytes: 48_000 },
  stderrTail: { lines: 20, bytes: 3000 },
}
/** The log also counts the facts and the number of each line. */
const overhead = 40
const newline = 10

interface Line {
  readonly stream: StreamName
  readonly text: string
}

export function makeOutputLog(writeLine: WriteLine, mask: Mask): OutputLog {
  const { lineBytes, head } = outputLimits
  // A secret that begins within the limit must be held completely to be masked.
  const held = lineBytes + mask.longest
  const partial = { stdout: makePartial(held), stderr: makePartial(held) }
  const tail = makeTail(outputLimits.tail)
  const stderrLines = makeTail(outputLimits.stderrTail)
  let lines = 0
  let bytes = 0
  let isHeadFull = false
  let hasEnded = false

  const take = (stream: StreamName) => {
    const text = fitLine(partial[stream].take(), mask, lineBytes)
    const line = { stream, text }
    const size = Buffer.byteLength(text) + overhead
    if (stream === 'stderr') stderrLines.push(line, size)
    isHeadFull ||= lines === head.lines || bytes + size > head.bytes
    if (isHeadFull) return tail.push(line, size)
    lines += 1
    bytes += size
    writeLine(text, { stream })
  }
  return {
    write(stream, chunk) {
      if (hasEnded) return
      let at = 0
      for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, at)) {
        partial[stream].add(chunk.subarray(at, end))
        take(stream)
        at = end + 1
      }
      partial[stream].add(chunk.subarray(at))
    },
    end() {
      if (hasEnded) return
      hasEnded = true
      for (const stream of ['stdout', 'stderr'] as const) if (partial[stream].size() > 0) take(stream)
      const { dropped } = tail
      if (dropped.lines > 0)
        writeLine(`${dropped.lines} lines (${dropped.bytes} bytes) were dropped here.`, { ...dropped })
      for (const { stream, text } of tail.lines) writeLine(text, { stream })
    },
    stderrTail: () => stderrLines.lines.map(({ text }) => text).join('\n'),
  }
}

function fitLine({ bytes, missing }: { bytes: Buffer; missing: number }, mask: Mask, longest: number): string {
  const text = mask(bytes.toString('utf8').replace(/\r$/, ''))
  const masked = Buffer.from(text)
  // The beginning of a secret may be at the end of what was held.
  const kept = missing === 0 ? masked : masked.subarray(0, Math.max(0, masked.length - mask.longest))
  if (missing === 0 && kept.length <= longest) return storableText(text, logLimits.messageLength)
  const cut = kept
    .subarray(0, longest)
    .toString('utf8')
    .replace(/\uFFFD$/, '')
  return storableText(
    `${cut}… (${masked.length - Buffer.byteLength(cut) + missing} more bytes)`,
    logLimits.messageLength,
  )
}

/** The current line, of which at most `most` bytes are held. */
function makePartial(most: number) {
  let chunks: Buffer[] = []
  let length = 0
  let missing = 0
  return {
    add(bytes: Buffer): void {
      const fits = bytes.subarray(0, most - length)
      // Copied, so that a few bytes do not keep their whole chunk in memory.
      if (fits.length > 0) chunks.push(Buffer.from(fits))
      length += fits.length
      missing += bytes.length - fits.length
    },
    size: () => length + missing,
    take(): { bytes: Buffer; missing: number } {
      const taken = { bytes: Buffer.concat(chunks), missing }
      chunks = []
      length = 0
      missing = 0
      return taken
    },
  }
}

/** The last lines, and how much was pushed out by later ones. */
function makeTail(most: { readonly lines: number; readonly bytes: number }) {
  const lines: Line[] = []
  const sizes: number[] = []
  const dropped = { lines: 0, bytes: 0 }
  let size = 0
  return {
    lines: lines as readonly Line[],
    dropped,
    push(line: Line, lineSize: number): void {
      lines.push(line)
      sizes.push(lineSize)
      size += lineSize
      while (lines.length > most.lines || size > most.bytes) {
        const gone = lines.shift()!
        size -= sizes.shift()!
        dropped.lines += 1
        dropped.bytes += Buffer.byteLength(gone.text) + 1
      }
    },
  }
}
