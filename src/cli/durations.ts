/** Durations, short enough for a table. */
const units = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
  ['s', 1],
] as const

/** "2 h", "14 s", "0.3 s": in the largest unit that fits. */
export function formatDuration(seconds: number): string {
  if (seconds < 1) return `${(Math.max(0, Math.round(seconds * 10)) / 10).toString()} s`
  const [unit, size] = units.find(([, size]) => seconds >= size) ?? ['s', 1]
  return `${Math.floor(seconds / size)} ${unit}`
}

/** "14 s ago", "in 2 h", or "now" within a second, because the clocks of two machines may differ a little. */
export function relativeTime(timestamp: string | null, nowMs = Date.now()): string {
  if (timestamp === null) return ''
  const seconds = (nowMs - Date.parse(timestamp)) / 1000
  if (Math.abs(seconds) < 1) return 'now'
  return seconds > 0 ? `${formatDuration(seconds)} ago` : `in ${formatDuration(-seconds)}`
}

export function durationBetween(from: string | null, to: string | null): string {
  return from === null || to === null ? '' : formatDuration((Date.parse(to) - Date.parse(from)) / 1000)
}
