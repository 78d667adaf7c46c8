// `npm run example:pipeline` starts a server and a worker, follows one run to its end, cancels a second one, and then
// stops and removes everything. The client uses only fetch, as any client of the async pipeline could.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const here = import.meta.dirname
const pawl = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'pawl-pipeline-'))
const ends = [() => rmSync(folder, { recursive: true, force: true })]
const stopped = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopped.abort(signal))

try {
  const server = await startServer()
  startProgram(['worker', join(here, 'handlers.ts'), '--server', server])
  const first = await startRun(server, { enable_evaluation: true, max_items_per_source: 10 })
  await follow(server, first.stream_url)
  const { status, errors } = await ask(server, first.status_url)
  console.log(`The run is ${status}: ${errors.map(({ stage, message }) => `${stage}: ${message}`).join('; ')}.\n`)

  const second = await startRun(server, {})
  await follow(server, second.stream_url, async ({ event, data }) => {
    if (event !== 'stage_start' || data.stage !== 'ingest') return
    console.log(JSON.stringify(await ask(server, `${second.status_url}/cancel`, {})))
  })
} catch (error) {
  if (!stopped.signal.aborted) console.error(error)
  process.exitCode = 1
} finally {
  for (const end of ends.reverse()) await end()
}

async function startRun(server, config) {
  const run = await ask(server, '/dialects/pipeline/v1/pipeline/scheduled-run-async', config)
  console.log(`Started ${run.job_id}, which is ${run.status}.`)
  return run
}

/** Sends a POST if there is a body, otherwise a GET. */
async function ask(server, path, body) {
  const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  const response = await fetch(server + path, { signal: stopped.signal, ...(body !== undefined && post) })
  if (!response.ok) throw new Error(`${path} answers ${response.status}: ${await response.text()}`)
  return response.json()
}

/** Shows the events of a run until it has ended. */
async function follow(server, path, onEvent = async () => {}) {
  const response = await fetch(server + path, { signal: stopped.signal })
  let rest = ''
  for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
    const frames = (rest + part).split('\n\n')
    rest = frames.pop()
    for (const frame of frames) {
      const { event, data } = Object.fromEntries(frame.split('\n').map(line => line.split(/: (.*)/s)))
      if (data === undefined) continue
      const received = { event, data: JSON.parse(data) }
      console.log(lineOf(received))
      await onEvent(received)
    }
  }
}

function lineOf({ event, data: { stage, progress, status } }) {
  if (event === 'stage_start') return `  ${stage} …`
  if (event === 'job_complete') return `  The job is ${status}.`
  const { status: result, duration_ms, metrics } = progress[stage]
  return `  ${stage} ${result}, ${duration_ms} ms ${JSON.stringify(metrics)}`
}

/** Starts a server on any free port. Returns its URL when it accepts requests. */
async function startServer() {
  const child = startProgram(['up', '--json', '--dialect', 'pipeline', '--port', '0', '--data', join(folder, 'data')])
  for await (const line of createInterface({ input: child.stdout, signal: stopped.signal })) {
    const { url } = JSON.parse(line)
    if (url !== undefined) return url
  }
  throw new Error('The server did not start.')
}

function startProgram(args) {
  const env = { ...process.env, PAWL_LOG_LEVEL: 'error' }
  const child = spawn(process.execPath, [pawl, ...args], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  // Discards the output: an unread pipe would fill up and block the process.
  child.stdout.resume()
  ends.push(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGTERM')
    await once(child, 'exit')
  })
  return child
}
