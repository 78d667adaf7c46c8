#!/usr/bin/env node
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { commands } from './commands.ts'
import { run } from './run.ts'

let hasTerminalEnded = false

function stopSignal(): AbortSignal {
  const ending = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      // A second signal ends the process at once.
      if (ending.signal.aborted) process.exit(130)
      ending.abort(signal)
    })
  }
  // The end of a terminal is often signalled twice: by the system, and by the shell.
  process.on('SIGHUP', () => {
    hasTerminalEnded = true
    ending.abort('SIGHUP')
  })
  stopWithNpm(() => ending.abort('SIGTERM'))
  return ending.signal
}

/**
 * npm and npx run a command in a shell. A SIGTERM ends npm and this shell, but the shell does not pass it on, so the end of
 * the shell means the same. This is so only for what the shell itself has started, not for servers that another program of
 * the script has started, and not for a script that uses &, whose command outlives the shell on purpose.
 */
function stopWithNpm(stop: () => void): void {
  const script = process.env.npm_lifecycle_script
  const shell = process.ppid
  if (!script || runsInBackground(script) || !isShellOf(script, shell)) return
  const timer = setInterval(() => {
    if (process.ppid === shell) return
    clearInterval(timer)
    stop()
  }, 250)
  timer.unref()
}

/** Whether the script has a single & that is not quoted and not part of a redirection, such as 2>&1. */
function runsInBackground(script: string): boolean {
  const words = script.replace(/'[^']*'|"(?:\\.|[^"\\])*"|\\./gs, '').replace(/[<>]&|&>/g, '')
  return /(^|[^&])&([^&]|$)/.test(words)
}

/** npm appends the arguments of `npm run` to the script. */
function isShellOf(script: string, pid: number): boolean {
  const words = argumentsOf(pid)
  return / -c /.test(words) && words.includes(script)
}

/** The arguments of a process, separated by spaces; empty if they cannot be read. */
function argumentsOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return spawnSync('ps', ['-ww', '-o', 'args=', '-p', String(pid)], { encoding: 'utf8' }).stdout ?? ''
  }
}

// The reader of a pipe may close it early, as `head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (!hasTerminalEnded) process.exit(error.code === 'EPIPE' ? 0 : 1)
})
// Messages for a reader that is gone are dropped.
process.stderr.on('error', () => {})

const { stdout, stderr, env } = process
const code = await run(commands, process.argv.slice(2), { stdout, stderr, env, folder: process.cwd(), stopSignal })
// The process exits without waiting for the event loop: a handler that never ends would keep a stopped worker alive.
await Promise.all([stdout, stderr].map(output => new Promise(resolve => output.write('', resolve))))
process.exit(code)
