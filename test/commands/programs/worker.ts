/** A worker of command tasks in a process of its own, to be killed. */
import { commandTask } from '../../../src/commands/command-task.ts'
import { openEngine } from '../../../src/engine/engine.ts'
import { startWorker } from '../../../src/worker/index.ts'
import { shelf } from '../../harness/shelf.ts'

export interface CommandWorkerProgram {
  readonly database: string
  readonly schema: string
  readonly folder: string
}

const { database, schema, folder }: CommandWorkerProgram = JSON.parse(process.argv[2]!)
const engine = await openEngine({ database, schema, migrate: false, connections: 2 })
startWorker(engine, [commandTask({ files: shelf(), folder })], { waitSeconds: 1, concurrency: 4 })
