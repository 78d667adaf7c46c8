/** The process table of the operating system. */
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'

/**
 * Returns when a process began, according to the kernel, or '' if it is dead. Where the kernel does not tell (macOS), a
 * living process is 'alive'.
 */
export function beganAt(pid: number): string {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return ''
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' ? '' : fields[19]!
  } catch {
    return 'alive'
  }
}

export interface Secrets {
  /** Names of environment variables. */
  readonly variables: readonly string[]
  /** Values of variables and arguments. */
  readonly values: readonly string[]
}

/**
 * Erases secrets from the environment and the arguments of this process. Programs of the same user can read those in
 * `/proc/<pid>/environ` and `/proc/<pid>/cmdline`. Deleting a variable from `process.env` does not change them: they
 * show the memory that the kernel filled when the process began. So that memory is overwritten.
 *
 * Returns false if other programs of this user may still read a secret. Only Linux lets a process overwrite them.
 */
export function eraseSecrets({ variables, values }: Secrets): boolean {
  const secrets = { variables, values: values.map(toBytes) }
  const isInEnvironment = Object.entries(process.env).some(([name, value]) =>
    secretInVariable(secrets, `${name}=${value}`),
  )
  const isInArguments = process.argv.some(argument => secretInArgument(secrets, toBytes(argument)) !== undefined)
  for (const name of variables) delete process.env[name]
  try {
    const [argumentsAt, environmentAt] = addresses()
    const areErased = [
      erase('/proc/self/cmdline', argumentsAt, entry => secretInArgument(secrets, entry)),
      erase('/proc/self/environ', environmentAt, entry => secretInVariable(secrets, entry)),
    ]
    return areErased.every(Boolean)
  } catch {
    return !isInEnvironment && !isInArguments
  }
}

/** One character per byte, the way memory is read below. */
const toBytes = (text: string) => Buffer.from(text).toString('latin1')

/** Addresses of the arguments and the environment in memory: fields 48 and 50 of proc_pid_stat(5). */
function addresses(): [argumentsAt: number, environmentAt: number] {
  const stat = readFileSync('/proc/self/stat', 'latin1')
  // The second field is the program's name in brackets, which may hold spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return [Number(fields[48 - 3]), Number(fields[50 - 3])]
}

/** Offset of a secret in `NAME=value`. */
function secretInVariable({ variables, values }: Secrets, entry: string): number | undefined {
  const start = entry.indexOf('=') + 1
  const value = entry.slice(start)
  const isSecret = variables.includes(entry.slice(0, start - 1)) || values.includes(value)
  return isSecret && !isErased(value) ? start : undefined
}

/** Offset of a secret in `value` or `--option=value`. */
function secretInArgument({ values }: Secrets, argument: string): number | undefined {
  const value = values.find(value => argument === value || argument.endsWith(`=${value}`))
  return value === undefined || isErased(value) ? undefined : argument.length - value.length
}

const isErased = (value: string) => /^\**$/.test(value)

function erase(file: string, start: number, secretIn: (entry: string) => number | undefined): boolean {
  const memory = openSync('/proc/self/mem', 'r+')
  try {
    let at = start
    for (const entry of readFileSync(file, 'latin1').split('\0')) {
      const from = secretIn(entry)
      if (from !== undefined) writeSync(memory, '*'.repeat(entry.length - from), at + from)
      at += entry.length + 1
    }
  } finally {
    closeSync(memory)
  }
  const entries = readFileSync(file, 'latin1').split('\0')
  return entries.every(entry => secretIn(entry) === undefined)
}
