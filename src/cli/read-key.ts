/** The key of a worker, from a place that its commands cannot read: a file that is then deleted, or standard input. */
import { readFile, unlink } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { Problem } from '../kernel/problem.ts'
import { refused } from './parse.ts'

export interface KeyFlags {
  readonly 'key-file'?: string | undefined
  readonly 'delete-key-file'?: true | undefined
}

/** How long the first line of standard input is waited for. */
const inputSeconds = 60
const longestKey = 1000

/** The key in the file of `--key-file`; undefined if there is no such flag. */
export async function readKey(flags: KeyFlags, input: Readable = process.stdin): Promise<string | undefined> {
  const { 'key-file': file, 'delete-key-file': isDeleted } = flags
  if (isDeleted && (file === undefined || file === '-')) throw refused('--delete-key-file needs --key-file FILE.')
  if (file === undefined) return undefined
  const fail = (why: string, cause?: unknown): never => {
    throw new Problem('FILE_INVALID', { file: file === '-' ? 'standard input' : file, why }, cause)
  }
  const reading = file === '-' ? firstLine(input) : readFile(file, 'utf8')
  const key = (await reading.catch(error => fail(error.message, error))).trim()
  if (isDeleted) await unlink(file).catch(error => fail(`it cannot be deleted: ${error.message}`, error))
  if (key === '' || key.length > longestKey || /\s/.test(key)) return fail('it holds no key')
  return key
}

/** Leaves the rest of the input unread: with `--with-input` the worker watches for its end. */
async function firstLine(input: Readable): Promise<string> {
  const late = AbortSignal.timeout(inputSeconds * 1000)
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
    late.addEventListener('abort', () => reject(new Error(`no key came within ${inputSeconds} s`)), { once: true })
  })
  return line
}
