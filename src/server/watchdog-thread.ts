/**
 * The thread of the watchdog. It counts its own rounds without a beat of the main thread. Counting rounds instead of time
 * ignores pauses of the whole process: they look like a single round.
 */
import { writeSync } from 'node:fs'
import { type Debugger, Session } from 'node:inspector'
import { parentPort, workerData } from 'node:worker_threads'
import type { Block } from './watchdog.ts'

interface Settings {
  readonly beats: Int32Array
  readonly beatMs: number
  readonly boundSeconds: number
}

const { beats, beatMs, boundSeconds } = workerData as Settings
/** Logs a block that may never end. The main thread cannot log it. */
const aloudSeconds = 10 * boundSeconds
const mostFrames = 12

let seen = Atomics.load(beats, 0)
let rounds = 0
let stack: readonly string[] = []

setInterval(() => {
  const now = Atomics.load(beats, 0)
  const seconds = (rounds * beatMs) / 1000
  if (now !== seen) {
    if (seconds >= boundSeconds) parentPort!.postMessage({ seconds, stack } satisfies Block)
    seen = now
    rounds = 0
    stack = []
    return
  }
  rounds += 1
  if (isReached(boundSeconds)) readStack(frames => (stack = frames))
  if (isReached(aloudSeconds)) tellAloud()
}, beatMs)

/** Whether the block has just reached this length. */
function isReached(bound: number): boolean {
  const [before, after] = [((rounds - 1) * beatMs) / 1000, (rounds * beatMs) / 1000]
  return before < bound && after >= bound
}

/** Stops the main thread for a moment, as a debugger does, to see which functions run. */
function readStack(take: (frames: string[]) => void): void {
  const session = new Session()
  session.connectToMainThread()
  const files = new Map<string, string>()
  session.on('Debugger.scriptParsed', ({ params }) => files.set(params.scriptId, params.url))
  session.on('Debugger.paused', ({ params }) => {
    take(params.callFrames.slice(0, mostFrames).map(frame => nameOf(frame, files)))
    session.post('Debugger.resume', () => session.disconnect())
  })
  session.post('Debugger.enable')
  session.post('Debugger.pause')
}

function nameOf({ functionName, location }: Debugger.CallFrame, files: ReadonlyMap<string, string>): string {
  const url = files.get(location.scriptId) ?? ''
  const file = url.replace(/^.*\/(?=(?:src|dist|node_modules)\/)/, '').replace(/\?.*$/, '')
  return `${functionName || 'a function'} (${file}:${location.lineNumber + 1})`
}

function tellAloud(): void {
  const facts = { time: new Date().toISOString(), level: 'error', event: 'loop.blocked' }
  const line = JSON.stringify({ ...facts, seconds: aloudSeconds, isOver: false, stack })
  writeSync(2, `${line}\n`)
}
