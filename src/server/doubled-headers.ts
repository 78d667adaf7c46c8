import { Problem } from '../kernel/problem.ts'

const once = ['host', 'authorization']

/**
 * Node uses the first of two headers of the same name; a proxy in front may use the last. The proxy would then have approved
 * another host or key than the one that is answered. `rawHeaders` has names and values in turn.
 */
export function refuseDoubled(rawHeaders: readonly string[]): void {
  const names = rawHeaders.filter((_, index) => index % 2 === 0).map(name => name.toLowerCase())
  const doubled = once.find(name => names.indexOf(name) !== names.lastIndexOf(name))
  if (doubled !== undefined) throw new Problem('REQUEST_INVALID', { why: `it has two ${doubled} headers` })
}
