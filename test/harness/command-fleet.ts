/** A server and workers for commands as users start them, each in a process of its own, with files on a small S3. */
import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { jobLifecycle } from '../../src/kernel/job.ts'
import { isFinal } from '../../src/kernel/lifecycle.ts'
import type { JobView } from '../../src/protocol/jobs/jobs.ts'
import { type SmallS3, startSmallS3 } from '../files/small-s3.ts'
import { type Bucket, bytesOf, objectOf } from '../files/small-s3-objects.ts'
import { type Cli, cli } from './cli.ts'
import { eventually } from './eventually.ts'
import { freePort } from './free-port.ts'
import { type Fresh, fresh } from './fresh.ts'
import { type Program, startProcess } from './program.ts'

export interface Fleet extends Fresh {
  readonly s3: SmallS3
  readonly bucket: Bucket
  /** Holds the attempts of all workers. */
  readonly folder: string
  startServer(): Program<string>
  /** Its requests to S3 are signed with its name. */
  startWorker(name: string, more?: { args?: readonly string[]; env?: Record<string, string> }): Program<string>
  jobEnds(id: string, withinSeconds?: number): Promise<JobView>
}

/** Short leases, so that lost tasks are soon found, and retries without a delay. */
export const hurried = { leaseSeconds: 5, heartbeatSeconds: 1, graceSeconds: 1 } as const

export async function commandFleet(t: TestContext, { keepsBytes = true } = {}): Promise<Fleet> {
  const programs: Program<string>[] = []
  const started = (program: Program<string>) => {
    programs.push(program)
    return program
  }
  // Before their store is closed.
  t.after(async () => {
    for (const program of programs) program.signal('SIGKILL')
    await Promise.all(programs.map(({ ended }) => ended))
  })
  const s3 = await startSmallS3({ keepsBytes })
  const credentials = { accessKeyId: 'test', secretAccessKey: 'secret' }
  const f = await fresh(t, { files: { s3: { endpoint: s3.endpoint, credentials } } })
  const port = await freePort()
  const own = await cli(t)
  t.after(() => s3.close())
  const server = fileURLToPath(new URL('../faults/programs/server.js', import.meta.url))
  const ask = { database: f.url!, schema: f.schema, port }
  const signedBy = (name: string) => ({
    AWS_ENDPOINT_URL_S3: s3.endpoint,
    AWS_ACCESS_KEY_ID: name,
    AWS_SECRET_ACCESS_KEY: 'secret',
    AWS_EC2_METADATA_DISABLED: 'true',
  })
  return {
    ...f,
    s3,
    bucket: s3.buckets.get('bucket')!,
    folder: join(own.folder, 'attempts'),
    startServer: () =>
      started(
        startProcess(
          t,
          [server, JSON.stringify(ask)],
          { env: { ...process.env, ...signedBy('server') } },
          line => line,
        ),
      ),
    startWorker: (name, { args = [], env = {} } = {}) =>
      started(startWorker(own, name, port, args, { ...signedBy(name), ...env })),
    jobEnds: (id, withinSeconds = 120) =>
      eventually(
        `job ${id} has ended`,
        async () => {
          const job = await f.engine.job(id)
          return isFinal(jobLifecycle, job.state) && job
        },
        withinSeconds,
      ),
  }
}

function startWorker(
  { start, folder }: Cli,
  name: string,
  port: number,
  args: readonly string[],
  env: Record<string, string>,
) {
  const where = ['--server', `http://127.0.0.1:${port}`, '--folder', join(folder, 'attempts'), '--name', name]
  return start(['worker', '--commands', ...where, ...args], { env })
}

/** Puts objects into the bucket, as if they had been there for long. Keys are bytes, as Latin-1. */
export async function fill(t: TestContext, bucket: Bucket, objects: Readonly<Record<string, string>>): Promise<void> {
  const { folder } = await cli(t)
  const file = join(folder, 'objects')
  await writeFile(file, Object.values(objects).join(''))
  let start = 0
  for (const [key, text] of Object.entries(objects)) {
    const size = Buffer.byteLength(text)
    const [md5, sha256] = ['md5', 'sha256'].map(kind => createHash(kind).update(text).digest('hex'))
    bucket.set(key, objectOf({ slices: [{ file, start, size }], size, md5: md5! }, { sha256: sha256! }))
    start += size
  }
}

/** The objects in the bucket under a prefix, by the rest of their keys. */
export async function textsIn(bucket: Bucket, prefix: string): Promise<Record<string, string>> {
  const texts: [string, string][] = []
  for (const [key, { slices }] of bucket) {
    if (!key.startsWith(prefix)) continue
    const chunks: Buffer[] = []
    for await (const chunk of bytesOf(slices)) chunks.push(chunk)
    texts.push([key.slice(prefix.length), Buffer.concat(chunks).toString()])
  }
  return Object.fromEntries(texts.sort(([one], [other]) => (one < other ? -1 : 1)))
}
