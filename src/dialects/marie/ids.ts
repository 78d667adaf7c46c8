/** Marie's ids are any texts, ours are UUIDs: what is none stands for one, always the same. */
import { createHash } from 'node:crypto'
import { isId } from '../../schema/fields.ts'

/** Jobs and DAGs of the same name are different things. */
export function idOf(kind: 'job' | 'dag', name: string): string {
  if (isId(name)) return name.toLowerCase()
  const hash = createHash('sha256').update(`marie ${kind} ${name}`).digest('hex')
  // Version 8, one's own; beginning with f, so that it comes before the others in lists, which are in the order of ids.
  const variant = ((Number.parseInt(hash[16]!, 16) & 0x3) | 0x8).toString(16)
  return `f${hash.slice(1, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-${variant}${hash.slice(17, 20)}-${hash.slice(20, 32)}`
}

/** A UUID is the same in any case of letters. */
export const nameOf = (id: string) => (isId(id) ? id.toLowerCase() : id)
