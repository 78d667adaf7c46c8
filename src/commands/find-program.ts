import { access, constants, stat } from 'node:fs/promises'
import { delimiter, resolve } from 'node:path'
import { GiveUp } from '../worker/errors.ts'

/** Looks where the system will look, so that a program that cannot be run is told in plain words, and not tried again. */
export async function mustFindProgram(program: string, path: string, cwd: string): Promise<void> {
  const places = program.includes('/')
    ? [resolve(cwd, program)]
    : placesIn(path).map(folder => resolve(folder, program))
  let refused: string | undefined
  for (const place of places) {
    const fault = await faultOf(place)
    if (fault === undefined) return
    if (fault === 'EACCES') refused ??= place
  }
  if (refused !== undefined) {
    throw new GiveUp(`The program ${refused} may not be run (EACCES): make it executable for the worker's user.`)
  }
  const where = program.includes('/') ? '' : ` in PATH (${path})`
  const hint = "Is it installed where the worker runs, in its image? Words of a shell need `['sh', '-c', '…']`."
  throw new GiveUp(`There is no program "${program}"${where} (ENOENT). ${hint}`)
}

/** Empty is, by custom, the current folder; a fresh one holds no program. */
const placesIn = (path: string) => path.split(delimiter).filter(folder => folder !== '')

async function faultOf(place: string): Promise<'ENOENT' | 'EACCES' | undefined> {
  try {
    if (!(await stat(place)).isFile()) return 'EACCES'
    await access(place, constants.X_OK)
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES' ? 'EACCES' : 'ENOENT'
  }
}
