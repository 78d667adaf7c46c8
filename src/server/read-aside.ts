import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { Problem } from '../kernel/problem.ts'
import { type Fault, specInvalid } from '../spec/faults.ts'

/** A text of this length is parsed in some milliseconds, faster than a thread starts. */
const shortText = 20_000
/** Parsing should take a second or two. */
const longestMs = 30_000
const mostMegabytes = 512

type Read = { readonly value: unknown } | { readonly faults: Fault[] }

/** Maximum number of texts in the queue. More are refused, because they would wait for minutes. */
const mostWaiting = 20

let latest: Promise<unknown> = Promise.resolve()
let waiting = 0

/**
 * Parses the text of a job spec. A megabyte of YAML takes a second or more, so a thread parses it while this one
 * answers other requests. One text is parsed at a time, which limits the memory. A short text is returned unchanged:
 * the engine parses it.
 */
export function readAside(text: string): Promise<unknown> {
  if (text.length <= shortText) return Promise.resolve(text)
  if (waiting >= mostWaiting) return Promise.reject(new Problem('SPECS_WAIT'))
  waiting += 1
  const reading = latest
    .then(() => readInThread(text))
    .finally(() => {
      waiting -= 1
    })
  latest = reading.catch(() => {})
  return reading
}

async function readInThread(text: string): Promise<unknown> {
  const thread = new Worker(new URL(`./yaml-thread${extname(import.meta.url)}`, import.meta.url), {
    workerData: text,
    resourceLimits: { maxOldGenerationSizeMb: mostMegabytes },
  })
  const tooMuch = () => specInvalid([{ at: 'spec', why: 'takes too much time or memory to read; send it as JSON' }])
  let timer: NodeJS.Timeout | undefined
  try {
    const read = await new Promise<Read>((resolve, reject) => {
      timer = setTimeout(() => reject(tooMuch()), longestMs)
      thread.on('message', resolve)
      thread.on('error', (error: NodeJS.ErrnoException) =>
        reject(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? tooMuch() : error),
      )
    })
    if ('faults' in read) throw specInvalid(read.faults)
    // The engine would parse it as a spec again.
    if (typeof read.value === 'string') throw specInvalid([{ at: 'spec', why: 'must be an object' }])
    return read.value
  } finally {
    clearTimeout(timer)
    await thread.terminate()
  }
}
