/** `s3rver`, a real S3 server from npm, on its own port with an empty bucket. */
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

interface S3rver {
  run(): Promise<{ port: number }>
  close(): Promise<void>
  readonly httpServer: { closeAllConnections(): void }
}

export async function startS3rver(): Promise<{ endpoint: string; close(): Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), 's3rver-'))
  const Server = createRequire(import.meta.url)('s3rver') as new (options: object) => S3rver
  const configureBuckets = [{ name: 'bucket' }]
  const server = new Server({ address: '127.0.0.1', port: 0, silent: true, directory, configureBuckets })
  const { port } = await server.run()
  return {
    endpoint: `http://127.0.0.1:${port}`,
    async close() {
      const closed = server.close()
      server.httpServer.closeAllConnections()
      await closed
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** The only access key that it accepts. */
export const credentials = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' }
