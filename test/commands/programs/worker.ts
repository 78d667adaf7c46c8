/** A worker for command tasks in its own process, so that a test can kill it. */
import { commandTask } from '../../../src/commands/command-task.ts'
import { openEngine } from '../../../src/engine/engine.ts'
import { startWorker } from '../../../src/worker/index.ts'
import { shelf } from '../../harness/shelf.ts'

export interface CommandWorkerProgram {
  readonly database: string
  readonly schema: string
  readonly folder: string
  /** Commands at once. Default 4. */
  readonly concurrency?: number
}

const { database, schema, folder, concurrency = 4 }: CommandWorkerProgram = JSON.parse(process.argv[2]!)
const engine = await openEngine({ database, schema, migrate: false, connections: 2 })
startWorker(engine, [commandTask({ files: shelf(), folder })], { waitSeconds: 1, concurrency })
