/** What a command left in its folder for outputs. */
import { readdir, realpath, stat } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { stagingFolder } from '../kernel/datum.ts'
import { GiveUp } from '../worker/errors.ts'
import { shown } from './place.ts'

export interface LeftFile {
  /** From the folder for outputs, parts joined by `/`. */
  readonly name: string
  /** Where its bytes lie. */
  readonly path: string
}

/**
 * Regular files, in the order of their names; empty folders count for nothing. A link to a file inside is that file.
 * Anything else is a failure that names it: what is left out silently is missed too late.
 */
export async function scanOutputs(out: string): Promise<LeftFile[]> {
  const root = await realpath(out)
  const found = await scan(root, root, '')
  const staged = found.find(({ name }) => name.startsWith(stagingFolder))
  if (staged !== undefined) throw cannotCarry(staged.name, `"${stagingFolder}" is Pawl's own`)
  return found.sort((one, other) => (one.name < other.name ? -1 : 1))
}

async function scan(root: string, folder: string, prefix: string): Promise<LeftFile[]> {
  const files: LeftFile[] = []
  // As bytes: a name that is no UTF-8 must be seen as what it is.
  for (const entry of await readdir(folder, { withFileTypes: true, encoding: 'buffer' })) {
    const bytes = entry.name as unknown as Buffer
    const name = prefix + bytes.toString('utf8')
    if (!Buffer.from(bytes.toString('utf8')).equals(bytes)) throw cannotCarry(name, 'its name is not UTF-8')
    const path = join(folder, bytes.toString('utf8'))
    if (entry.isFile()) files.push({ name, path })
    else if (entry.isDirectory()) files.push(...(await scan(root, path, `${name}/`)))
    else if (entry.isSymbolicLink()) files.push({ name, path: await linked(root, path, name) })
    else throw cannotCarry(name, 'it is neither a file nor a folder')
  }
  return files
}

async function linked(root: string, path: string, name: string): Promise<string> {
  const target = await realpath(path).catch(() => undefined)
  if (target === undefined) throw cannotCarry(name, 'it is a link to nothing')
  if (!target.startsWith(root + sep))
    throw cannotCarry(name, 'it is a link that leads out of the folder; copy the file')
  if (!(await stat(target)).isFile()) throw cannotCarry(name, 'it is a link to something that is no file')
  return target
}

function cannotCarry(name: string, why: string): GiveUp {
  return new GiveUp(`The output ${shown(name)} cannot be kept: ${why}.`)
}
