/**
 * Fixed paths, like /pfs, for programs that know no others: links in a folder of the machine, to what one task has. Tasks
 * that share a mount take turns; one whose turn has not come waits, with its lease renewed and its time running.
 *
 * Taking turns: everyone puts up a claim of its own, named after its process, and only then looks for others; of two at
 * once at least one sees the other. Whoever sees a living one takes its own down and tries again a little later. Only
 * who has the turn removes what dead ones left, so nobody ever removes a link that is in use.
 */
import { randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isObject } from '../schema/check.ts'
import { GiveUp } from '../worker/errors.ts'
import type { AttemptFolder } from './attempt-folder.ts'
import { isOwnerDead, ownerToken } from './process-owner.ts'
import { quote } from './safe-path.ts'

/** By the name of the link, what it leads to. */
type Links = Readonly<Record<string, string>>

const turnsFolder = '.pawl-turns'
const outName = 'out'

/** Makes the links once it is this task's turn. What is returned removes them, and passes the turn on. */
export async function takeMount(
  mount: string,
  names: readonly string[],
  folder: AttemptFolder,
  signal: AbortSignal,
): Promise<() => Promise<void>> {
  if (names.includes(outName)) {
    throw new GiveUp(`An input cannot be called "${outName}" where ${mount} is mounted: the outputs are there.`)
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
    // Written down before they are made: if we die, the next knows what to remove.
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

/** One level: its parent is the machine's, and not ours to make. */
async function makeFolder(place: string): Promise<void> {
  if ((await stat(place).catch(() => undefined))?.isDirectory()) return
  await mkdir(place).catch(error => {
    // Another made it in the same moment; what else there is, the next write tells.
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

/** Removes what dead ones left. */
async function bury(mount: string, claim: string): Promise<void> {
  const turns = join(mount, turnsFolder)
  for (const name of await readdir(turns)) {
    // One that came meanwhile lives, and looks for us.
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

/** Only those that lead where we said: what else is there is not ours. */
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
        ? 'Something else is there: remove it, or choose another mount.'
        : "The worker's user must be able to make that folder and write to it, and what it lies in must exist; on macOS / itself is read-only."
    throw new GiveUp(`The mount ${quote(place)} cannot be made: ${message}. ${hint}`, { cause: error })
  }
}
