/**
 * Globs, as in Pachyderm and Falconeri: `/` is the whole folder, `/*` each thing in it, `/2024-*` and so on by level.
 * Special are `*`, `?`, `[a-z]`, `[!a-z]`, `{this,that}`, `**` as a part of its own, and `\` before a character that is
 * meant as it is. Everything else is itself, also a dot in front, brackets and quotes. A glob with `**` finds files only,
 * at any depth; another finds files and folders at its own.
 */
import picomatch from 'picomatch'

export interface Glob {
  /** One for each level that is looked through; none: the whole folder, unless there is a rest. */
  readonly levels: readonly Level[]
  /** From `**` on: whether a path below the last level is meant. */
  readonly rest?: (path: string) => boolean
}

export interface Level {
  matches(name: string): boolean
  /** The only name that it matches, where there is but one. */
  readonly only?: string
}

export function readGlob(glob: string): Glob {
  const parts = partsOf(glob)
  const deep = parts.indexOf('**')
  const levels = (deep < 0 ? parts : parts.slice(0, deep)).map(levelOf)
  return deep < 0 ? { levels } : { levels, rest: matcherOf(parts.slice(deep).join('/')) }
}

/** What is wrong with a glob, if anything is. */
export function globFault(glob: string): string | undefined {
  if (!glob.startsWith('/')) return 'a glob begins with /'
  if (glob === '/') return undefined
  if (!glob.isWellFormed() || glob.includes('\0')) return 'it holds a NUL, or is not Unicode'
  for (const part of partsOf(glob)) {
    if (part === '') return 'it has an empty part: two / in a row, or one at the end'
    if (part === '.' || part === '..') return 'it has a part that is . or ..'
    const fault = partFault(part)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** A glob's part that matches this name and no other. */
export function escapeGlob(name: string): string {
  return name.replace(/[\\*?[\]{}]/g, '\\$&')
}

const token = /\\[\s\S]|\[[!^]?\]?[^\]]*\]|[\s\S]/g

/** Between the `/`s; those that are escaped or inside of brackets are caught by `partFault`. */
function partsOf(glob: string): string[] {
  return glob === '/' ? [] : glob.slice(1).split('/')
}

function partFault(part: string): string | undefined {
  const tokens: string[] = part.match(token) ?? []
  if (tokens.at(-1) === '\\') return 'nothing follows a \\'
  if (tokens.includes('[]') || tokens.includes('[!]')) return 'there is nothing between a [ and its ]'
  if (tokens.includes('[')) return 'a [ in a part is not closed there; for the character itself write \\['
  let open = 0
  for (const one of tokens) {
    if (one === '{') open += 1
    if (one === '}') open -= 1
    if (open < 0) break
  }
  if (open !== 0) return 'a { or } in a part has no other there; for the character itself write \\{'
  const special = tokens.map(one => (one.startsWith('\\') ? 'x' : one)).join('')
  return /\{[^}]*\.\./.test(special) ? 'ranges like {1..9} are not known; name each' : undefined
}

function levelOf(part: string): Level {
  const name = part.replace(/\\([\s\S])/g, '$1')
  const isPlain = (part.match(token) ?? []).every(one => one.startsWith('\\') || !/[*?[{]/.test(one))
  if (isPlain) return { matches: other => other === name, only: name }
  return { matches: matcherOf(part) }
}

function matcherOf(glob: string): (path: string) => boolean {
  return picomatch(glob.replace(token, forMatcher), {
    dot: true,
    flags: 's',
    nonegate: true,
    noextglob: true,
    strictSlashes: true,
    windows: false,
  })
}

/** The matcher knows more special characters than we do, writes `[!a]` as `[^a]`, and loses count of `\`s in a row. */
function forMatcher(one: string): string {
  if (one === '\\\\') return '[\\\\]'
  if (one.startsWith('[!')) return `[^${one.slice(2)}`
  return /^[()|^$+"!@]$/.test(one) ? `\\${one}` : one
}
