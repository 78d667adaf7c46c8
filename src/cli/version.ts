import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The version of the package. Its package.json is some folders above the compiled code. */
export function readVersion(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    const found = versionIn(join(folder, 'package.json'))
    if (found !== undefined) return found
    if (folder === dirname(folder)) return 'unknown'
  }
}

function versionIn(file: string): string | undefined {
  try {
    const { name, version } = JSON.parse(readFileSync(file, 'utf8')) as { name?: string; version?: string }
    return name === 'pawl' ? version : undefined
  } catch {
    return undefined
  }
}
