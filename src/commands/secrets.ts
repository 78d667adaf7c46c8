/** Values of secrets: read where the worker keeps them, handed to the command, and shown nowhere else. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RunPlan } from '../kernel/datum.ts'
import { GiveUp } from '../worker/errors.ts'

/**
 * By the name of the variable: from `<folder>/<secret>/<key>`, as Kubernetes lays secrets out; else from the worker's
 * own variable of that name. The worker's own settings (`PAWL_…`) are never given away.
 */
export async function readSecrets(
  secrets: RunPlan['secrets'],
  folder: string | undefined,
  environment: NodeJS.ProcessEnv,
): Promise<Record<string, string>> {
  const values: Record<string, string> = {}
  for (const [name, { secret, key, optional }] of Object.entries(secrets)) {
    const value = (await fileOf(folder, secret, key)) ?? (name.startsWith('PAWL_') ? undefined : environment[name])
    if (value === undefined && optional === true) continue
    if (value === undefined) throw new GiveUp(missing(name, secret, key, folder))
    if (value.includes('\0')) throw new GiveUp(`The secret "${secret}/${key}" cannot be a variable: it holds a NUL.`)
    values[name] = value
  }
  return values
}

async function fileOf(folder: string | undefined, secret: string, key: string): Promise<string | undefined> {
  if (folder === undefined) return undefined
  try {
    return await readFile(join(folder, secret, key), 'utf8')
  } catch {
    return undefined
  }
}

function missing(name: string, secret: string, key: string, folder: string | undefined): string {
  const file = folder === undefined ? 'it was started without a folder of secrets' : 'no such file can be read there'
  const hint = `Give the worker --secrets FOLDER with a file ${secret}/${key}, or a variable ${name}.`
  return `This worker does not have the secret "${secret}/${key}" for ${name} (${file}). ${hint}`
}

export interface Mask {
  /** The text without any secret in it. */
  (text: string): string
  /** Of the longest that is hidden, in bytes. */
  readonly longest: number
}

const hidden = '***'
/** Lines of a secret that are shorter hide too much that is none: a brace, a blank. */
const shortestLine = 4

/** Hides values, and each line of one that has several. What a program makes of a value (its base64, say) is not seen. */
export function maskFor(values: readonly string[]): Mask {
  const lines = values.flatMap(value => value.split(/\r?\n/)).filter(line => line.length >= shortestLine)
  const whole = values.map(value => value.trim()).filter(value => value !== '')
  // The longest first: what holds another is hidden as a whole.
  const words = [...new Set([...whole, ...lines])].sort((one, other) => other.length - one.length)
  const mask = (text: string) => words.reduce((masked, word) => masked.replaceAll(word, hidden), text)
  return Object.assign(mask, { longest: Math.max(0, ...words.map(word => Buffer.byteLength(word))) })
}
