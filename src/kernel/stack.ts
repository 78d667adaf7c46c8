/** Reads the stacks of JavaScript errors, and finds the lines that a user wrote. */

/** A line of a stack that names a place in a file. */
export interface Frame {
  /** The line up to the place: `    at work (`. */
  readonly before: string
  /** A path, or a `file:` URL. */
  readonly file: string
  readonly line: number
  readonly column: number
  readonly after: string
}

const frameLine = /^(\s*at (?:.*?\(|async )?)((?:(?:file:\/\/)?\/|[A-Za-z]:[\\/]|node:)[^<>]*):(\d+):(\d+)(\)?)$/
/** No real frame is longer. */
const longestLine = 2000

export function readFrame(text: string): Frame | undefined {
  const match = text.length > longestLine ? null : frameLine.exec(text)
  if (match === null) return undefined
  const [, before = '', file = '', line, column, after = ''] = match
  return { before, file, line: Number(line), column: Number(column), after }
}

export function writeFrame({ before, file, line, column, after }: Frame): string {
  return `${before}${file}:${line}:${column}${after}`
}

/** Whether a file belongs neither to Node nor to an installed package. */
export function isUsersFile(file: string): boolean {
  return !file.startsWith('node:') && !/[\\/]node_modules[\\/]/.test(file)
}

/** The path of a file, without `file://`, and on Windows without the slash before the drive letter. */
export function pathOf(file: string): string {
  if (!file.startsWith('file://')) return file
  const path = file.slice('file://'.length).replace(/^\/(?=[A-Za-z]:)/, '')
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/** The innermost place of a stack that is in the user's own code. */
export function usersFrame(stack: string, isOwn: (path: string) => boolean): Frame | undefined {
  for (const text of stack.split('\n')) {
    const frame = readFrame(text)
    if (frame !== undefined && isUsersFile(frame.file) && !isOwn(pathOf(frame.file))) return frame
  }
  return undefined
}
