/** A server in a process of its own, with its babysitter, to be killed and started again on the same port. */
import { startBabysitter } from '../../../src/babysitter/babysitter.ts'
import { openEngine } from '../../../src/engine/engine.ts'
import { dialectNames } from '../../../src/protocol/dialects.ts'
import { startServer } from '../../../src/server/server.ts'

export interface ServerProgram {
  readonly database: string
  readonly schema: string
  readonly port: number
}

const { database, schema, port }: ServerProgram = JSON.parse(process.argv[2]!)
const engine = await openEngine({ database, schema, migrate: false, connections: 2 })
const server = await startServer(engine, { port, dialects: dialectNames })
startBabysitter(engine)
process.stdout.write(`${JSON.stringify({ url: server.url })}\n`)
