/** Runs a command until it exits, and turns its exit status into a result or an error. */
import { once } from 'node:events'
import { access, constants, stat } from 'node:fs/promises'
import { delimiter, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RunPlan } from '../kernel/datum.ts'
import type { TaskContext } from '../worker/define-task.ts'
import { GiveUp } from '../worker/errors.ts'
import { makeOutputLog, type OutputLog } from './output-log.ts'
import { type Ended, type ProcessGroup, startGroup, tellSignal } from './process-group.ts'
import type { Mask } from './secrets.ts'

export interface Running {
  readonly run: RunPlan
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly mask: Mask
}

/** How long remaining output may take to arrive after all processes of the group are dead. */
const lastBytesMs = 1000

/**
 * Returns the run time if the command succeeds, and throws otherwise. A soft cancel sends SIGTERM, after which the
 * command may still succeed. A hard one sends SIGKILL at the moment the worker learns of it. When this returns, no
 * process of the group is alive.
 */
export async function runCommand({ run, cwd, env, mask }: Running, ctx: TaskContext): Promise<{ seconds: number }> {
  ctx.signal.throwIfAborted()
  const log = makeOutputLog(ctx.log.info, mask)
  const began = performance.now()
  const group = start(run.command, cwd, env)
  const onSoft = () => group.signal('SIGTERM')
  // The attempt may be reported right after this, so log the output now.
  const onHard = () => {
    group.signal('SIGKILL')
    log.end()
  }
  ctx.signal.addEventListener('abort', onSoft, { once: true })
  ctx.hardSignal.addEventListener('abort', onHard, { once: true })
  try {
    const ended = await outcomeOf(group, log)
    ctx.hardSignal.throwIfAborted()
    if (ended.code !== null && ended.code in exitCodeNotes) await checkProgram(run.command[0]!, env.PATH ?? '', cwd)
    checkExit(ended, run, log.stderrTail())
    return { seconds: (performance.now() - began) / 1000 }
  } finally {
    ctx.signal.removeEventListener('abort', onSoft)
    ctx.hardSignal.removeEventListener('abort', onHard)
  }
}

function start(command: readonly string[], cwd: string, env: Readonly<Record<string, string>>): ProcessGroup {
  try {
    return startGroup(command, { cwd, env })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'E2BIG') throw error
    throw new GiveUp('The arguments and variables of the command are longer than the system allows (E2BIG).')
  }
}

async function outcomeOf(group: ProcessGroup, log: OutputLog): Promise<Ended> {
  try {
    group.stdout.on('data', bytes => log.write('stdout', bytes))
    group.stderr.on('data', bytes => log.write('stderr', bytes))
    const outputEnded = Promise.all([group.stdout, group.stderr].map(stream => once(stream, 'close').catch(() => {})))
    const ended = await group.ended
    group.signal('SIGKILL')
    await Promise.race([outputEnded, sleep(lastBytesMs, undefined, { ref: false })])
    return ended
  } finally {
    await group.end()
    log.end()
  }
}

const exitCodeNotes: Readonly<Record<number, string>> = {
  126: ' (by convention: the program is not executable)',
  127: ' (by convention: the program was not found)',
}

function checkExit({ code, signal }: Ended, { permanentExitCodes }: RunPlan, stderrTail: string): void {
  if (code === 0) return
  const how =
    signal === null
      ? `ended with exit code ${code}${exitCodeNotes[code!] ?? ''}`
      : `was killed by ${tellSignal(signal)}`
  const message = `The command ${how}.${stderrTail === '' ? '' : ` The end of its stderr:\n${stderrTail}`}`
  if (code !== null && permanentExitCodes.includes(code)) throw new GiveUp(message)
  throw new Error(message)
}

/**
 * Searches where the shell has searched, so that a missing program gives a clear error and no retry. An exit code like
 * that of the shell may also be the command's own.
 */
async function checkProgram(program: string, path: string, cwd: string): Promise<void> {
  const places = program.includes('/')
    ? [resolve(cwd, program)]
    : placesIn(path).map(folder => resolve(folder, program))
  let refused: string | undefined
  for (const place of places) {
    const error = await accessErrorOf(place)
    if (error === undefined) return
    if (error === 'EACCES') refused ??= place
  }
  if (refused !== undefined) {
    throw new GiveUp(`The program ${refused} cannot be executed (EACCES): make it executable for the worker's user.`)
  }
  const where = program.includes('/') ? '' : ` in PATH (${path})`
  const hint = "Is it installed where the worker runs, or in its image? For shell syntax, use `['sh', '-c', '…']`."
  throw new GiveUp(`The program "${program}" was not found${where} (ENOENT). ${hint}`)
}

/** An empty entry means the current folder, which is new and holds no program. */
const placesIn = (path: string) => path.split(delimiter).filter(folder => folder !== '')

async function accessErrorOf(place: string): Promise<'ENOENT' | 'EACCES' | undefined> {
  try {
    if (!(await stat(place)).isFile()) return 'EACCES'
    await access(place, constants.X_OK)
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES' ? 'EACCES' : 'ENOENT'
  }
}
