/** Names come from buckets and payloads and are untrusted. The paths built here never leave their folder. */
import { join } from 'node:path'
import { checkLocalPath } from '../files/names.ts'

/** Joins a path to a folder. Refuses a path that cannot be a file of this machine. */
export function joinInside(folder: string, path: string): string {
  checkLocalPath(path)
  return join(folder, path)
}

/** Quotes a name for a message, with invisible characters escaped, and truncates it. */
export function quote(name: string): string {
  const text = JSON.stringify(name)
  return text.length > 300 ? `${text.slice(0, 300)}…"` : text
}
