/**
 * Runs test files one after another in one process, so that the engine is imported once, the embedded store is compiled
 * once, and connections stay warm. `reporter.ts` sends the results.
 */
import { test } from 'node:test'
import { inspect } from 'node:util'
import { selectDatabase } from '../harness/databases.ts'
import { endProcess } from '../harness/process-end.ts'
import { endOfFile, type Order, type Report } from './messages.ts'

const send = (report: Report) => process.send!(report)

process.on('message', async (order: Order) => {
  if (order === 'end') {
    await endProcess()
    // Now nothing keeps the process alive, unless a test left it behind: the runner waits for the exit.
    process.disconnect()
    return
  }
  const { url, database } = order
  selectDatabase(database)
  try {
    // The query makes Node evaluate the file again for each database.
    await import(`${url}?${encodeURIComponent(database)}`)
  } catch (error) {
    const result = { path: ['the file cannot be loaded'], outcome: 'failed', ms: 0, error: inspect(error) } as const
    send({ kind: 'result', result })
  }
  // Top-level tests run in the order in which they were added, so this one runs last.
  await test(endOfFile, () => {})
})

send({ kind: 'ready' })
