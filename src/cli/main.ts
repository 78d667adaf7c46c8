#!/usr/bin/env node
import { commands } from './commands.ts'
import { run } from './run.ts'

function stopSignal(): AbortSignal {
  const ending = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      // A second signal ends the process at once.
      if (ending.signal.aborted) process.exit(130)
      ending.abort(signal)
    })
  }
  stopWithNpm(() => ending.abort('SIGTERM'))
  return ending.signal
}

/**
 * npm and npx run a command in a shell. A SIGTERM ends npm and this shell, but the shell does not pass it on, so the end of
 * the shell means the same. A script that starts the command in the background, with &, outlives its shell on purpose.
 */
function stopWithNpm(stop: () => void): void {
  const script = process.env.npm_lifecycle_script
  if (script === undefined || /(^|[^&])&([^&]|$)/.test(script)) return
  const shell = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === shell) return
    clearInterval(timer)
    stop()
  }, 250)
  timer.unref()
}

// The reader of a pipe may close it early, as `head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))

const { stdout, stderr, env } = process
const code = await run(commands, process.argv.slice(2), { stdout, stderr, env, folder: process.cwd(), stopSignal })
// The process exits without waiting for the event loop: a handler that never ends would keep a stopped worker alive.
await Promise.all([stdout, stderr].map(output => new Promise(resolve => output.write('', resolve))))
process.exit(code)
