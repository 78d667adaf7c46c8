// `npm run example:words` starts a server, runs the job, prints the ten most frequent words, and then stops and removes
// everything. With `-- --s3` it also starts an S3 server, and the texts and the results are in a bucket of it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'

const here = import.meta.dirname
const pawl = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const unknown = process.argv.slice(2).filter(word => word !== '--s3')
if (unknown.length > 0) {
  console.error(`Unknown: ${unknown.join(' ')}. The only option is --s3.`)
  process.exit(2)
}

const folder = mkdtempSync(join(tmpdir(), 'pawl-words-'))
const ends = [() => rmSync(folder, { recursive: true, force: true })]
const stopped = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopped.abort(signal))

try {
  const place = process.argv.includes('--s3') ? await inBucket() : inFolder()
  const server = await startPawl(place.env)
  const env = { ...process.env, ...place.env, PAWL_SERVER: server }
  const { id } = JSON.parse(await run(['job', 'run', join(folder, 'job.yaml'), '--json'], env))
  await show(['job', 'wait', id], env)
  const uris = (await run(['job', 'outputs', id, '--uris'], env)).trim().split('\n')
  const words = await place.read(uris.find(uri => uri.endsWith('/words.txt')))
  console.log(`\nThe ten most frequent words, of ${uris.length - 1} texts:`)
  console.log(words.split('\n').slice(0, 10).join('\n'))
} catch (error) {
  if (!stopped.signal.aborted) console.error(error.message)
  process.exitCode = 1
} finally {
  for (const end of ends.reverse()) await end()
}

/** Copies the example to a temporary folder, so that nothing is left behind in this one. */
function inFolder() {
  cpSync(join(here, 'texts'), join(folder, 'texts'), { recursive: true })
  cpSync(join(here, 'job.yaml'), join(folder, 'job.yaml'))
  return { env: {}, read: uri => readFileSync(fileURLToPath(uri), 'utf8') }
}

/** Puts the texts into a bucket, and changes the URIs of the job accordingly. */
async function inBucket() {
  // Suppresses the S3 client's warning about future versions of Node.
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = 'true'
  const S3rver = createRequire(import.meta.url)('s3rver')
  const bucket = 'words'
  const s3rver = new S3rver({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory: join(folder, 's3'),
    configureBuckets: [{ name: bucket }],
  })
  const { port } = await s3rver.run()
  ends.push(async () => {
    const closed = s3rver.close()
    s3rver.httpServer.closeAllConnections()
    await closed
  })
  const endpoint = `http://127.0.0.1:${port}`
  const credentials = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' }
  const checksums = { requestChecksumCalculation: 'WHEN_REQUIRED', responseChecksumValidation: 'WHEN_REQUIRED' }
  const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials, ...checksums })
  ends.push(() => client.destroy())
  for (const name of readdirSync(join(here, 'texts'))) {
    const Body = readFileSync(join(here, 'texts', name))
    await client.send(new PutObjectCommand({ Bucket: bucket, Key: `texts/${name}`, Body }))
  }
  const job = readFileSync(join(here, 'job.yaml'), 'utf8').replaceAll('file://./', `s3://${bucket}/`)
  writeFileSync(join(folder, 'job.yaml'), job)
  console.log(`The texts are in s3://${bucket}/texts/ at ${endpoint}.`)
  return {
    env: {
      AWS_ENDPOINT_URL_S3: endpoint,
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    },
    async read(uri) {
      const Key = decodeURIComponent(uri.slice(`s3://${bucket}/`.length))
      const { Body } = await client.send(new GetObjectCommand({ Bucket: bucket, Key }))
      return Body.transformToString()
    },
  }
}

/** Starts a server on any free port. Returns its URL when it accepts requests. */
async function startPawl(env) {
  const args = ['up', '--commands', '--json', '--port', '0', '--data', join(folder, 'data')]
  const child = spawn(process.execPath, [pawl, ...args], {
    env: { ...process.env, PAWL_LOG_LEVEL: 'error', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  ends.push(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGTERM')
    await once(child, 'exit')
  })
  for await (const line of createInterface({ input: child.stdout, signal: stopped.signal })) {
    const { url } = JSON.parse(line)
    if (url === undefined) continue
    // Discards further output: an unread pipe would fill up and block the process.
    child.stdout.resume()
    return url
  }
  throw new Error('The server did not start.')
}

async function run(args, env) {
  const child = spawn(process.execPath, [pawl, ...args], { env, stdio: ['ignore', 'pipe', 'inherit'], ...ending() })
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')])
  if (code !== 0) throw new Error(`pawl ${args.slice(0, 2).join(' ')} ended with ${code}.`)
  return output
}

async function show(args, env) {
  const child = spawn(process.execPath, [pawl, ...args], { env, stdio: ['ignore', 'inherit', 'inherit'], ...ending() })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`pawl ${args.slice(0, 2).join(' ')} ended with ${code}.`)
}

function ending() {
  return { signal: stopped.signal, killSignal: 'SIGTERM' }
}
