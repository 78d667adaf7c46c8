/** Counts the lines of code of the examples that a page lists. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Replaces the last cell of each row that begins with a link to a TypeScript file by the file's lines of code. */
export function withLineCounts(page: string, path: string): string {
  return page.replace(/^(\| \[[^\]]+\]\(([^)]+\.ts)\) \|.*\|) \d+ \|$/gm, (_, row, file) => {
    return `${row} ${linesOfCode(readFileSync(join(dirname(path), file), 'utf8'))} |`
  })
}

/** Lines that are neither empty nor only a comment. */
export function linesOfCode(text: string): number {
  const withoutBlocks = text.replace(/^\s*\/\*.*?\*\/\s*$/gms, '')
  return withoutBlocks.split('\n').filter(line => line.trim() !== '' && !line.trim().startsWith('//')).length
}
