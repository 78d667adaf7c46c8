/** Shortens what a problem quotes from a request: enough to find it, however much was sent. */

const longest = 1000
const deepest = 8

/** The same value with long texts cut short. What lies too deep is left out. */
export function shortEcho(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return value.length <= longest ? value : `${value.slice(0, longest).toWellFormed()}…`
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  if (depth === deepest) return '…'
  if (Array.isArray(value)) return value.map(item => shortEcho(item, depth + 1))
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, shortEcho(inner, depth + 1)]))
}
