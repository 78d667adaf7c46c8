/** The worker thread that runs PGlite. It answers requests one at a time, in the order in which they arrive. */
import { parentPort, workerData } from 'node:worker_threads'
import { PGlite } from '@electric-sql/pglite'
import type { StoreRequest, StoreResponse } from './embedded.ts'
import { readEmptyStore, unpackStore } from './empty-store.ts'

const port = parentPort!
const { folder } = workerData as { folder?: string }
const opening = open()
let last: Promise<void> = Promise.resolve()

port.on('message', (asked: StoreRequest) => {
  last = last.then(async () => port.postMessage(await answer(asked)))
})

async function open(): Promise<PGlite> {
  if (folder !== undefined) {
    unpackStore(folder)
    return PGlite.create(folder)
  }
  const tar = readEmptyStore()
  return PGlite.create('memory://', tar && { loadDataDir: new Blob([tar], { type: 'application/x-tar' }) })
}

async function answer({ n, text, values }: StoreRequest): Promise<StoreResponse> {
  try {
    const db = await opening
    // An empty text closes the database in an orderly way. It is the last request.
    if (text === '') await db.close()
    else if (values === null) await db.exec(text)
    else {
      const { fields, rows } = await db.query<unknown[]>(text, [...values], { rowMode: 'array' })
      return { n, fields: fields.map(field => field.name), rows }
    }
    return { n }
  } catch (error) {
    const { message, code, constraint, detail } = error as Error & StoreResponse['error']
    return {
      n,
      error: { message, ...(code && { code }), ...(constraint && { constraint }), ...(detail && { detail }) },
    }
  }
}
