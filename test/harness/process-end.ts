/** Closes resources that the tests of a process share (connections, a browser) after its last file. */
import { after } from 'node:test'

const closers: (() => Promise<unknown>)[] = []

export function atProcessEnd(close: () => Promise<unknown>): void {
  closers.push(close)
}

export async function endProcess(): Promise<void> {
  for (const close of closers.splice(0)) await close()
}

// The runner calls it; a file that is run with plain `node` ends by itself.
if (process.send === undefined) after(endProcess)
