/** Some packages name their license and ship no text. They get the standard text, with their author. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Plugin } from 'vite'

export const licensesFile = 'LICENSES.md'

const packages = join(import.meta.dirname, '../node_modules')

export function completeLicenses(): Plugin {
  return {
    name: 'complete-licenses',
    apply: 'build',
    writeBundle({ dir }) {
      const file = join(dir!, licensesFile)
      const sections = readFileSync(file, 'utf8').split(/^(?=## )/m)
      writeFileSync(file, sections.map(withText).join(''))
    },
  }
}

function withText(section: string): string {
  const heading = /^## (\S+) - \S+ \((.+)\)\s*$/.exec(section)
  return heading === null ? section : `${section.trimEnd()}\n\n${standardText(heading[1]!, heading[2]!)}\n`
}

function standardText(name: string, license: string): string {
  const file = join(import.meta.dirname, `licenses/${license}.txt`)
  if (!existsSync(file)) {
    throw new Error(
      `${name} ships no text of its license ${license}. Add the text as dashboard/licenses/${license}.txt.`,
    )
  }
  const { author } = JSON.parse(readFileSync(join(packages, name, 'package.json'), 'utf8'))
  const holder = typeof author === 'string' ? author : (author?.name ?? `the authors of ${name}`)
  return `Copyright (c) ${holder}\n\n${readFileSync(file, 'utf8')}`
}
