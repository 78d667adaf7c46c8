/** The values of secrets: read by the worker, passed to the command, and shown nowhere else. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RunPlan } from '../kernel/datum.ts'
import { GiveUp } from '../worker/errors.ts'

/**
 * Returns the values by variable name, from `<folder>/<secret>/<key>` (the layout of Kubernetes volumes), or else from
 * the worker's variable of the same name. The worker's own settings (`PAWL_…`) are never passed on.
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
    if (value.includes('\0'))
      throw new GiveUp(`The secret "${secret}/${key}" cannot be an environment variable: it contains a NUL.`)
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
  const file = folder === undefined ? 'it was started without --secrets' : 'the file is missing or unreadable'
  const hint = `Give the worker --secrets FOLDER with a file ${secret}/${key}, or a variable ${name}.`
  return `This worker does not have the secret "${secret}/${key}" for ${name} (${file}). ${hint}`
}

export interface Mask {
  /** Returns the text with all secrets hidden. */
  (text: string): string
  /** Length of the longest secret, in bytes. */
  readonly longest: number
}

const hidden = '***'
/** Shorter lines of a secret, such as a brace, would hide too much ordinary text. */
const shortestLine = 4

/** Hides values, and each line of a multi-line value. Transformed values (base64, for example) are not recognized. */
export function maskFor(values: readonly string[]): Mask {
  const lines = values.flatMap(value => value.split(/\r?\n/)).filter(line => line.length >= shortestLine)
  const whole = values.map(value => value.trim()).filter(value => value !== '')
  // Longest first, so that a secret that contains another is hidden completely.
  const words = [...new Set([...whole, ...lines])].sort((one, other) => other.length - one.length)
  const mask = (text: string) => words.reduce((masked, word) => masked.replaceAll(word, hidden), text)
  return Object.assign(mask, { longest: Math.max(0, ...words.map(word => Buffer.byteLength(word))) })
}
