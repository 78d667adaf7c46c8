// A server process of its own, on the database that it is given; says where it listens.
import { pawl, startBabysitter } from '../../dist/index.js'
import { startServer } from '../../dist/server/index.js'

const [url] = process.argv.slice(2)
const engine = await pawl({ database: url!, connections: 4 })
const server = await startServer(engine, { port: 0, dialects: ['jobnik'] })
const babysitter = startBabysitter(engine)
process.stdout.write(`${server.url}\n`)
process.on('SIGTERM', async () => {
  await server.close()
  await babysitter.stop()
  await engine.close()
  process.exit(0)
})
