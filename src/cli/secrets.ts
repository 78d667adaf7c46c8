/** Hides the secrets of a Pawl process from the commands that it runs as the same user. */
import { readFile, unlink } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import type { ResolvedSettings } from '../config/resolve-settings.ts'
import { envOf, type Setting, type SettingName, settings } from '../config/settings.ts'
import { Problem } from '../kernel/problem.ts'
import { eraseSecrets } from '../machine/processes.ts'
import { invalidCommand } from './parse.ts'

const secretSettings = (Object.keys(settings) as SettingName[]).filter(name => (settings[name] as Setting).secret)

/** The environment variables with keys or database URLs. */
const secretVariables: readonly string[] = secretSettings.flatMap(name => envOf(name) ?? [])

/** Erases the secrets from the environment and arguments that other processes can read. False if the system prevents it. */
export function hideOwnSecrets({ values }: ResolvedSettings): boolean {
  const secretValues = secretSettings.flatMap(name => (values[name] as string | undefined) ?? [])
  return eraseSecrets({ variables: secretVariables, values: secretValues })
}

/** The environment for a child process that gets its secrets in another way. */
export function withoutSecrets(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !secretVariables.includes(name)))
}

interface KeyFlags {
  readonly 'key-file'?: string | undefined
  readonly 'delete-key-file'?: true | undefined
}

/** How long to wait for the first line of standard input. */
const inputSeconds = 60
const longestKey = 1000

/**
 * The key of a worker from `--key-file`: a source that its commands cannot read, because it is a file that is then deleted,
 * or standard input. Undefined without that flag.
 */
export async function readKey(flags: KeyFlags, input: Readable = process.stdin): Promise<string | undefined> {
  const { 'key-file': file, 'delete-key-file': isDeleted } = flags
  if (isDeleted && (file === undefined || file === '-'))
    throw invalidCommand('--delete-key-file requires --key-file FILE.')
  if (file === undefined) return undefined
  const fail = (why: string, cause?: unknown): never => {
    throw new Problem('FILE_INVALID', { file: file === '-' ? 'standard input' : file, why }, cause)
  }
  const reading = file === '-' ? firstLine(input) : readFile(file, 'utf8')
  const key = (await reading.catch(error => fail(error.message, error))).trim()
  if (isDeleted) await unlink(file).catch(error => fail(`it cannot be deleted: ${error.message}`, error))
  if (key === '' || key.length > longestKey || /\s/.test(key)) return fail('it does not contain a key')
  return key
}

/** Leaves the rest of the input unread: with `--with-input` the worker watches for its end. */
async function firstLine(input: Readable): Promise<string> {
  const timeout = AbortSignal.timeout(inputSeconds * 1000)
  const line = new Promise<string>((resolve, reject) => {
    let text = ''
    const take = () => {
      for (let chunk = input.read(); chunk !== null; chunk = input.read()) text += chunk
      if (text.includes('\n') || text.length > longestKey) done()
    }
    const done = () => {
      input.off('readable', take).off('end', done)
      resolve(text.split('\n')[0]!)
    }
    input.on('readable', take).on('end', done).once('error', reject)
    timeout.addEventListener('abort', () => reject(new Error(`no key was received within ${inputSeconds} s`)), {
      once: true,
    })
  })
  return line
}
