/**
 * The worker thread that runs PGlite. It receives messages of PostgreSQL's wire protocol, executes them in the order in
 * which they arrive, and returns the database's messages unread.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { PGlite } from '@electric-sql/pglite'
import type { StoreAnswer } from './embedded.ts'
import { readEmptyStore, unpackStore } from './empty-store.ts'

const port = parentPort!
const { folder } = workerData as { folder?: string }
const opening = open()
let last: Promise<void> = Promise.resolve()

port.on('message', (message: Uint8Array) => {
  last = last.then(async () => {
    const answer = await execute(message)
    port.postMessage(answer, answer instanceof Uint8Array ? [answer.buffer] : [])
  })
})

async function open(): Promise<PGlite> {
  if (folder !== undefined) {
    unpackStore(folder)
    return PGlite.create(folder)
  }
  const tar = readEmptyStore()
  return PGlite.create('memory://', tar && { loadDataDir: new Blob([tar], { type: 'application/x-tar' }) })
}

async function execute(message: Uint8Array): Promise<StoreAnswer> {
  try {
    const db = await opening
    const chunks: Uint8Array<ArrayBuffer>[] = []
    // An empty message closes the database in an orderly way. It is the last one.
    if (message.length === 0) await db.close()
    // A chunk is a view into the database's memory, which the next statement overwrites.
    else await db.execProtocolRawStream(message, { onRawData: chunk => void chunks.push(new Uint8Array(chunk)) })
    return join(chunks)
  } catch (error) {
    const { message: text, code } = error as Error & { code?: string }
    return { message: text, ...(code && { code }) }
  }
}

function join(chunks: readonly Uint8Array<ArrayBuffer>[]): Uint8Array<ArrayBuffer> {
  if (chunks.length === 1) return chunks[0]!
  const joined = new Uint8Array(chunks.reduce((length, chunk) => length + chunk.length, 0))
  let offset = 0
  for (const chunk of chunks) {
    joined.set(chunk, offset)
    offset += chunk.length
  }
  return joined
}
