/**
 * A worker of Falconeri, written from its document: get the job and stop unless it runs; reserve a datum, and if there is
 * none wait; fetch its inputs to `/pfs/<repo>`, run the command, register what is in `/pfs/out`, upload it, report the
 * files, report the datum. Requests that get no answer are repeated, as by its client.
 */
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Job, OutputFile, Reserved } from './falconeri.ts'

export interface FalconeriWorker {
  readonly root: string
  readonly jobId: string
  readonly pod: string
  /** Called before each request that changes something. */
  readonly onStep?: (what: string) => void | Promise<void>
}

/** Works until the job has ended. Returns the datums that it processed. */
export async function workAsPod({ root, jobId, pod, onStep = () => {} }: FalconeriWorker): Promise<string[]> {
  const pfs = await mkdtemp(join(tmpdir(), 'pawl-pfs-'))
  const done: string[] = []
  try {
    for (;;) {
      const { job } = await ask<{ job: Job }>(root, 'GET', `/jobs/${jobId}`)
      if (job.status !== 'running') return done
      await onStep('reserve')
      const names = { node_name: 'node', pod_name: pod }
      const reserved = await ask<Reserved | null>(root, 'POST', `/jobs/${jobId}/reserve_next_datum`, names)
      if (reserved === null) {
        await sleep(25)
        continue
      }
      const { datum } = reserved
      const { output, error } = await processDatum(root, job, reserved, { pod, pfs, onStep })
      const status = error === null ? 'done' : 'error'
      const backtrace = error === null ? null : '(none)'
      await onStep('report the datum')
      const body = { pod_name: pod, datum: { status, output, error_message: error, backtrace } }
      await ask(root, 'PATCH', `/datums/${datum.id}`, body)
      done.push(datum.id)
    }
  } finally {
    await rm(pfs, { recursive: true, force: true })
  }
}

async function processDatum(
  root: string,
  job: Job,
  { datum, input_files }: Reserved,
  { pod, pfs, onStep }: { pod: string; pfs: string; onStep: (what: string) => void | Promise<void> },
): Promise<{ output: string; error: string | null }> {
  await rm(pfs, { recursive: true, force: true })
  await mkdir(join(pfs, 'out'), { recursive: true })
  for (const { uri, local_path } of input_files) {
    const place = join(pfs, relative('/pfs', local_path))
    await mkdir(dirname(place), { recursive: true })
    await cp(fileURLToPath(uri), place, { recursive: true })
  }
  const { output, code } = await run(job.command, pfs)
  if (code !== 0) return { output, error: `command ${job.command[0]} failed with exit status: ${code}` }
  const names = (await readdir(join(pfs, 'out'), { recursive: true, withFileTypes: true }))
    .filter(entry => entry.isFile())
    .map(entry => relative(join(pfs, 'out'), join(entry.parentPath, entry.name)))
  const folder = job.egress_uri.endsWith('/') ? job.egress_uri : `${job.egress_uri}/`
  const path = `/datums/${datum.id}/output_files`
  await onStep('register files')
  const registered = { pod_name: pod, output_files: names.map(name => ({ uri: `${folder}${name}` })) }
  const { output_files } = await ask<{ output_files: OutputFile[] }>(root, 'POST', path, registered)
  await onStep('upload')
  await cp(join(pfs, 'out'), fileURLToPath(folder), { recursive: true })
  await onStep('report files')
  const uploaded = output_files.map(({ id }) => ({ id, status: 'done' }))
  await ask(root, 'PATCH', path, { pod_name: pod, output_files: uploaded })
  return { output, error: null }
}

function run([program, ...args]: readonly string[], pfs: string): Promise<{ output: string; code: number }> {
  return new Promise(resolve => {
    const env = { ...process.env, PFS: pfs }
    execFile(program!, args, { env }, (error, stdout, stderr) => {
      resolve({ output: stdout + stderr, code: error === null ? 0 : Number(error.code ?? 1) })
    })
  })
}

/** Throws if the request is refused, which ends the pod. */
async function ask<T>(root: string, method: string, path: string, json?: unknown): Promise<T> {
  const headers = json === undefined ? {} : { 'content-type': 'application/json' }
  const body = json === undefined ? {} : { body: JSON.stringify(json) }
  for (let pauseMs = 20; ; pauseMs = Math.min(2 * pauseMs, 500)) {
    const answer = await fetch(root + path, { method, headers, ...body })
      .then(async response => ({ status: response.status, text: await response.text() }))
      .catch(() => undefined)
    if (answer !== undefined && answer.status < 400)
      return answer.text === '' ? (undefined as T) : JSON.parse(answer.text)
    if (answer !== undefined && answer.status < 500)
      throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
    await sleep(pauseMs)
  }
}
