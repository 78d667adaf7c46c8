import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Problem } from '../kernel/problem.ts'
import { beganAt } from '../machine/began-at.ts'

const mine = new Set<string>()
const tries = 10

/**
 * Keeps a second process out of a data folder; two would destroy it.
 *
 * Every process puts up a claim of its own, named after itself and when it began (since numbers of processes are used
 * again), and only then looks for others: of two at once, at least one sees the other. Whoever sees a living one
 * takes its own down; two that saw each other try again after a moment of chance. The claim of a dead process names
 * nobody else, so anyone may remove it at any time.
 */
export function lockFolder(folder: string): () => void {
  const place = `${resolve(folder)}.lock`
  if (mine.has(place)) throw new Problem('STORE_LOCKED', { folder, pid: process.pid })
  const began = beganAt(process.pid)
  const claim = join(place, `${process.pid}-${began}`)
  let holder: number | undefined
  for (let n = 0; n < tries; n++) {
    mkdirSync(place, { recursive: true })
    // The same name can only be another thread of this process; where beginnings are not known, an earlier process.
    if (!putUp(claim, began === 'alive' ? 'w' : 'wx')) throw new Problem('STORE_LOCKED', { folder, pid: process.pid })
    holder = livingOther(place)
    if (holder === undefined) {
      mine.add(place)
      return () => {
        mine.delete(place)
        rmSync(claim, { force: true })
      }
    }
    rmSync(claim, { force: true })
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Math.random() * 20)
  }
  throw new Problem('STORE_LOCKED', { folder, pid: holder })
}

function putUp(claim: string, flag: 'w' | 'wx'): boolean {
  try {
    writeFileSync(claim, '', { flag })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** The process, other than this one, that has a claim and lives. Claims of the dead go. */
function livingOther(place: string): number | undefined {
  for (const name of readdirSync(place)) {
    const [pid, began] = name.split('-')
    if (Number(pid) === process.pid && began === beganAt(process.pid)) continue
    if (beganAt(Number(pid)) === began) return Number(pid)
    rmSync(join(place, name), { force: true })
  }
  return undefined
}
