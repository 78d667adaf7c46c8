import { pawl } from '../engine/engine.ts'
import type { StoreFlags } from './main.ts'

const marks = { bad: '✗', warning: '!', note: '·' } as const

/** It must not mend what it is to examine, so it opens the store as it is. */
export async function runDoctor({ json, ...store }: StoreFlags & { json: boolean }): Promise<number> {
  const inMemory = store.database === undefined && store.folder === undefined
  await using engine = await pawl({ ...store, migrate: inMemory })
  const { store: kind, findings, healthy } = await engine.doctor()
  if (json) {
    process.stdout.write(`${JSON.stringify({ store: kind, healthy, findings }, null, 2)}\n`)
    return healthy ? 0 : 1
  }
  process.stdout.write(`${kind}\n`)
  for (const { grade, what, todo } of findings) process.stdout.write(`${marks[grade]} ${what}\n    ${todo}\n`)
  process.stdout.write(healthy ? 'Every rule holds.\n' : 'Something is wrong; see above.\n')
  return healthy ? 0 : 1
}
