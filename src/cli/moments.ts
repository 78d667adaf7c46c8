/** Spans of time, in as few words as a table has room for. */
const units = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
  ['s', 1],
] as const

/** "2 h", "14 s", "0.3 s": the largest unit that fits. */
export function span(seconds: number): string {
  if (seconds < 1) return `${(Math.max(0, Math.round(seconds * 10)) / 10).toString()} s`
  const [unit, size] = units.find(([, size]) => seconds >= size) ?? ['s', 1]
  return `${Math.floor(seconds / size)} ${unit}`
}

/** "14 s ago", "in 2 h"; the clocks of two machines may differ a little, so a moment near now is "now". */
export function relative(moment: string | null, nowMs = Date.now()): string {
  if (moment === null) return ''
  const seconds = (nowMs - Date.parse(moment)) / 1000
  if (Math.abs(seconds) < 1) return 'now'
  return seconds > 0 ? `${span(seconds)} ago` : `in ${span(-seconds)}`
}

export function between(from: string | null, to: string | null): string {
  return from === null || to === null ? '' : span((Date.parse(to) - Date.parse(from)) / 1000)
}
