/** Finds the files that a command left in its output folder. */
import { lstat, readdir, realpath, stat } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { byBytes, isHidden, nameOf } from '../files/names.ts'
import { GiveUp } from '../worker/errors.ts'
import { toAttemptError } from './attempt-error.ts'
import { quote } from './safe-path.ts'

export interface LeftFile {
  /** Relative to the output folder, with `/` as the separator. */
  readonly name: string
  /** The local path of the file. */
  readonly path: string
}

/**
 * Returns regular files sorted by name; empty folders are ignored. A link to a file in the folder counts as that file.
 * Anything else is an error that names it, because an output that is left out silently is noticed too late. `out`: the
 * real path of the folder, because the command may have replaced the folder or a parent with a link.
 */
export async function scanOutputs(out: string): Promise<LeftFile[]> {
  const root = await realpath(out).catch(() => undefined)
  if (root !== out || !(await lstat(out)).isDirectory()) {
    throw new GiveUp('The output folder was removed or replaced by the command.')
  }
  const found = await scan(root, root, '').catch(error => {
    throw toAttemptError(error, 'Reading the outputs')
  })
  // Listings would hide it, so it would be stored and never found.
  const hidden = found.find(({ name }) => isHidden(name))
  if (hidden !== undefined) throw cannotCarry(hidden.name, 'the name is reserved for Pawl')
  return found.sort((one, other) => byBytes(one.name, other.name))
}

async function scan(root: string, folder: string, prefix: string): Promise<LeftFile[]> {
  const files: LeftFile[] = []
  // Read as bytes, so that names that are not UTF-8 are detected.
  for (const entry of await readdir(folder, { withFileTypes: true, encoding: 'buffer' })) {
    const part = nameOf(entry.name as unknown as Buffer)
    const name = prefix + part
    const path = join(folder, part)
    if (entry.isFile()) files.push({ name, path })
    else if (entry.isDirectory()) files.push(...(await scan(root, path, `${name}/`)))
    else if (entry.isSymbolicLink()) files.push({ name, path: await linked(root, path, name) })
    else throw cannotCarry(name, 'it is neither a file nor a folder')
  }
  return files
}

async function linked(root: string, path: string, name: string): Promise<string> {
  const target = await realpath(path).catch(() => undefined)
  if (target === undefined) throw cannotCarry(name, 'it is a broken link')
  if (!target.startsWith(root + sep))
    throw cannotCarry(name, 'it is a link to a file outside the folder; copy the file instead')
  if (!(await stat(target)).isFile()) throw cannotCarry(name, 'it is a link to something other than a file')
  return target
}

function cannotCarry(name: string, why: string): GiveUp {
  return new GiveUp(`The output ${quote(name)} cannot be stored: ${why}.`)
}
