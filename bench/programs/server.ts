// A server process on a database (a URL) or an embedded store (a folder). Prints its address.
import { pawl, startBabysitter } from '../../dist/index.js'
import { startServer } from '../../dist/server/index.js'

const [store] = process.argv.slice(2)
const isServer = /^postgres/.test(store!)
const engine = await pawl(isServer ? { database: store!, connections: 4 } : { folder: store! })
const server = await startServer(engine, { port: 0, dialects: ['jobnik', 'falconeri'] })
const babysitter = startBabysitter(engine)
process.stdout.write(`${server.url}\n`)
process.on('SIGTERM', async () => {
  await server.close()
  await babysitter.stop()
  await engine.close()
  process.exit(0)
})
