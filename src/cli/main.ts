#!/usr/bin/env node
import { commands } from './commands.ts'
import { run } from './run.ts'

function untilTold(): AbortSignal {
  const ending = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      // Told a second time, it does not wait any longer.
      if (ending.signal.aborted) process.exit(130)
      ending.abort(signal)
    })
  }
  return ending.signal
}

// Whoever reads from us may have read enough.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))

const { stdout, stderr, env } = process
const code = await run(commands, process.argv.slice(2), { stdout, stderr, env, folder: process.cwd(), untilTold })
// Not left to the end of the event loop: a handler that never ends would keep a worker alive that has stopped.
await Promise.all([stdout, stderr].map(output => new Promise(resolve => output.write('', resolve))))
process.exit(code)
