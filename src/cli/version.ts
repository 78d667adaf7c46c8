import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The folder of this package. The compiled code is some folders below it. */
export function ownFolder(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    if (manifestIn(folder)?.name === 'pawl' || folder === dirname(folder)) return folder
  }
}

export function readVersion(): string {
  return manifestIn(ownFolder())?.version ?? 'unknown'
}

function manifestIn(folder: string): { readonly name?: string; readonly version?: string } | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  } catch {
    return undefined
  }
}
