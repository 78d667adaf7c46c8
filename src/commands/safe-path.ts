/** Names come from buckets and payloads, and may be anything; what they become here never leaves its folder. */
import { join } from 'node:path'
import { checkLocalPath } from '../files/names.ts'

/** Where a path lies below a folder. One that cannot lie there is refused by its name. */
export function joinInside(folder: string, path: string): string {
  checkLocalPath(path)
  return join(folder, path)
}

/** A name in a message: quoted, with what cannot be seen made visible, and not without end. */
export function quote(name: string): string {
  const text = JSON.stringify(name)
  return text.length > 300 ? `${text.slice(0, 300)}…"` : text
}
