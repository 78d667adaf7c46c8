/**
 * What handlers say of themselves. Traffic alone cannot show that code has stopped, or that it has not begun yet, so the
 * handler of the test tasks writes a line to a file when it begins and one when it has stopped, however it ends.
 */
import { existsSync, readFileSync } from 'node:fs'
import type { HeldTask } from '../protocol/sync.ts'

export interface Entry extends HeldTask {
  readonly word: 'begin' | 'end'
}

export interface Journal {
  readonly file: string
  entries(): Entry[]
  /** The epochs under which a task was begun, in order. */
  begun(id: string): number[]
  ended(id: string): number[]
}

export function readJournal(file: string): Journal {
  const entries = () => (existsSync(file) ? readFileSync(file, 'utf8') : '').split('\n').flatMap(entryIn)
  const epochs = (word: Entry['word'], wanted: string) =>
    entries().flatMap(entry => (entry.word === word && entry.id === wanted ? [entry.epoch] : []))
  return {
    file,
    entries,
    begun: id => epochs('begin', id),
    ended: id => epochs('end', id),
  }
}

function entryIn(line: string): Entry[] {
  const [, word, id, epoch] = /^(begin|end) (\S+) (\d+)$/.exec(line.trim()) ?? []
  return word === undefined ? [] : [{ word: word as Entry['word'], id: id!, epoch: Number(epoch) }]
}
