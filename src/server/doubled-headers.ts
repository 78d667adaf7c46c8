import { Problem } from '../kernel/problem.ts'

const once = ['host', 'authorization']

/**
 * Of two headers of these names Node takes the first, and a proxy in front may take the last: it would have let in a request
 * for another host, or of another key, than the one that is answered. `rawHeaders`: names and values in turn.
 */
export function refuseDoubled(rawHeaders: readonly string[]): void {
  const names = rawHeaders.filter((_, index) => index % 2 === 0).map(name => name.toLowerCase())
  const doubled = once.find(name => names.indexOf(name) !== names.lastIndexOf(name))
  if (doubled !== undefined) throw new Problem('REQUEST_INVALID', { why: `it has two ${doubled} headers` })
}
