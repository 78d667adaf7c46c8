/**
 * Fixed paths such as /pfs, for programs that cannot use others: symbolic links in a folder of the machine that point
 * to the files of one task. Tasks that share a mount take turns. A task that waits for its turn keeps renewing its
 * lease, and its timeout runs.
 *
 * How turns are taken: each task first creates its own claim file, named after its process, and only then looks for
 * others. So if two do it at once, at least one sees the other. If a task sees the claim of a living process, it
 * removes its own claim and tries again a little later. Only the task that has the turn removes the links of dead
 * processes, so nobody ever removes a link that is in use.
 */
import { randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isObject } from '../schema/check.ts'
import { GiveUp } from '../worker/errors.ts'
import { quote } from './attempt-error.ts'
import { type AttemptFolder, isOwnerDead, ownerToken } from './attempt-folder.ts'

/** The target of each link, by its name. */
type Links = Readonly<Record<string, string>>

const turnsFolder = '.pawl-turns'
const outName = 'out'

/** Waits for this task's turn and creates the links. The returned function removes them and ends the turn. */
export async function takeMount(
  mount: string,
  names: readonly string[],
  folder: AttemptFolder,
  signal: AbortSignal,
): Promise<() => Promise<void>> {
  if (names.includes(outName)) {
    throw new GiveUp(`An input cannot be called "${outName}" with a mount: ${mount}/${outName} holds the outputs.`)
  }
  const links = { ...Object.fromEntries(names.map(name => [name, join(folder.in, name)])), [outName]: folder.out }
  const turns = join(mount, turnsFolder)
  const claim = `${ownerToken()}.${randomBytes(6).toString('hex')}`
  for (const place of [mount, turns]) await making(mount, () => makeFolder(place))
  const pass = async () => {
    await removeLinks(mount, links)
    await rm(join(turns, claim), { force: true })
  }
  try {
    await takeTurn(mount, claim, signal)
    await bury(mount, claim)
    // Recorded before they are created: if this process dies, the next one knows what to remove.
    await making(mount, () => writeFile(join(turns, claim), JSON.stringify(links)))
    for (const [name, target] of Object.entries(links)) {
      await making(join(mount, name), () => symlink(target, join(mount, name)))
    }
    return pass
  } catch (error) {
    await pass()
    throw error
  }
}

/** Creates one level only. The parent belongs to the machine. */
async function makeFolder(place: string): Promise<void> {
  if ((await stat(place).catch(() => undefined))?.isDirectory()) return
  await mkdir(place).catch(error => {
    // Another process created it at the same moment. Any other problem shows at the next write.
    if (error.code !== 'EEXIST') throw error
  })
}

async function takeTurn(mount: string, claim: string, signal: AbortSignal): Promise<void> {
  const turns = join(mount, turnsFolder)
  for (;;) {
    signal.throwIfAborted()
    await making(mount, () => writeFile(join(turns, claim), '', { flag: 'wx' }))
    const others = (await readdir(turns)).filter(name => name !== claim)
    if (others.every(isDeadClaim)) return
    await rm(join(turns, claim))
    await sleep(20 + Math.random() * 80, undefined, { signal }).catch(() => {})
  }
}

const isDeadClaim = (name: string) => isOwnerDead(name.split('.')[0]!)

/** Removes the links and claims of dead processes. */
async function bury(mount: string, claim: string): Promise<void> {
  const turns = join(mount, turnsFolder)
  for (const name of await readdir(turns)) {
    // A new claim belongs to a living process, which looks for ours.
    if (name === claim || !isDeadClaim(name)) continue
    await removeLinks(mount, await linksOf(join(turns, name)))
    await rm(join(turns, name), { force: true })
  }
}

async function linksOf(claim: string): Promise<Links> {
  const links: unknown = await readFile(claim, 'utf8')
    .then(JSON.parse)
    .catch(() => undefined)
  return isObject(links) ? (links as Links) : {}
}

/** Removes only links with the recorded target. Anything else is not ours. */
async function removeLinks(mount: string, links: Links): Promise<void> {
  for (const [name, target] of Object.entries(links)) {
    const place = join(mount, name)
    if ((await readlink(place).catch(() => undefined)) === target) await rm(place, { force: true })
  }
}

async function making(place: string, make: () => Promise<unknown>): Promise<void> {
  try {
    await make()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const hint =
      code === 'EEXIST'
        ? 'The path already exists: remove it, or choose another mount.'
        : "The worker's user must be able to create that folder and write to it, and its parent must exist. On macOS, / is read-only."
    throw new GiveUp(`The mount ${quote(place)} cannot be created: ${message}. ${hint}`, { cause: error })
  }
}
