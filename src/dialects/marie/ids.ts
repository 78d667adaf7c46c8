/** Marie's ids are any text, Pawl's are UUIDs. A text that is not a UUID is always mapped to the same one. */
import { createHash } from 'node:crypto'
import { isId } from '../../schema/fields.ts'

/** A job and a DAG with the same name have different ids. */
export function idOf(kind: 'job' | 'dag', name: string): string {
  if (isId(name)) return name.toLowerCase()
  const hash = createHash('sha256').update(`marie ${kind} ${name}`).digest('hex')
  // Version 8 is for custom UUIDs. The leading f puts them first in lists, which are ordered by id.
  const variant = ((Number.parseInt(hash[16]!, 16) & 0x3) | 0x8).toString(16)
  return `f${hash.slice(1, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-${variant}${hash.slice(17, 20)}-${hash.slice(20, 32)}`
}

/** UUIDs are compared in lower case. */
export const nameOf = (id: string) => (isId(id) ? id.toLowerCase() : id)
