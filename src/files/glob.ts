/**
 * Globs, as in Pachyderm and Falconeri: `/` is the whole folder, `/*` each entry in it, `/2024-*` and so on by level.
 * Special are `*`, `?`, `[a-z]`, `[!a-z]`, `{this,that}`, `**` as a whole part, and `\` to escape a character. All
 * other characters stand for themselves, including leading dots, parentheses and quotes. A glob with `**` matches only
 * files, at any depth. Other globs match files and folders at their own depth.
 *
 * Globs are untrusted, and names may be crafted to fit them. So a glob becomes an RE2 pattern, which takes time linear
 * in the length of the name.
 */
import { RE2JS } from 're2js'

export interface Glob {
  /** One entry per level to list. Empty means the whole folder, unless there is a rest. */
  readonly levels: readonly Level[]
  /** From `**` on: whether a path below the last level matches. */
  readonly rest?: (path: string) => boolean
}

export interface Level {
  matches(name: string): boolean
  /** The only name that it can match, if there is just one. */
  readonly only?: string
}

export function readGlob(glob: string): Glob {
  const parts = partsOf(glob)
  const deep = parts.indexOf('**')
  const levels = (deep < 0 ? parts : parts.slice(0, deep)).map(levelOf)
  return deep < 0 ? { levels } : { levels, rest: matcherOf(deepPattern(parts.slice(deep))) }
}

/** Returns why a glob is invalid, or undefined. */
export function globError(glob: string): string | undefined {
  if (!glob.startsWith('/')) return 'a glob must begin with /'
  if (glob === '/') return undefined
  if (!glob.isWellFormed() || glob.includes('\0')) return 'it contains a NUL, or is not valid Unicode'
  for (const part of partsOf(glob)) {
    if (part === '') return 'it has an empty part: two / in a row, or one at the end'
    if (part === '.' || part === '..') return 'it has a part that is . or ..'
    const error = partError(part)
    if (error !== undefined) return error
  }
  return undefined
}

/** Escapes a name so that the glob part matches only this name. */
export function escapeGlob(name: string): string {
  return name.replace(/[\\*?[\]{}]/g, '\\$&')
}

const token = /\\[\s\S]|\[[!^]?\]?[^\]]*\]|[\s\S]/g

/** Splits at every `/`. `partError` catches those that are escaped or inside brackets. */
function partsOf(glob: string): string[] {
  return glob === '/' ? [] : glob.slice(1).split('/')
}

function partError(part: string): string | undefined {
  const tokens: string[] = part.match(token) ?? []
  if (tokens.at(-1) === '\\') return 'nothing follows a \\'
  if (tokens.includes('[]') || tokens.includes('[!]')) return 'there is nothing between a [ and its ]'
  if (tokens.includes('[')) return 'a [ is not closed within its part; to match the character, write \\['
  let open = 0
  for (const one of tokens) {
    if (one === '{') open += 1
    if (one === '}') open -= 1
    if (open < 0) break
  }
  if (open !== 0) return 'a { or } is unbalanced within its part; to match the character, write \\{'
  const special = tokens.map(one => (one.startsWith('\\') ? 'x' : one)).join('')
  if (/\{[^}]*\.\./.test(special)) return 'ranges like {1..9} are not supported; list each value'
  try {
    matcherOf(partPattern(part))
    return undefined
  } catch {
    return `it has an invalid part: ${part}`
  }
}

function levelOf(part: string): Level {
  const name = part.replace(/\\([\s\S])/g, '$1')
  const isPlain = (part.match(token) ?? []).every(one => one.startsWith('\\') || !/[*?[{]/.test(one))
  if (isPlain) return { matches: other => other === name, only: name }
  return { matches: matcherOf(partPattern(part)) }
}

function matcherOf(pattern: string): (path: string) => boolean {
  const compiled = RE2JS.compile(pattern, RE2JS.DOTALL)
  return path => compiled.testExact(path)
}

/** `**` is any number of folders or, at the end, any path. */
function deepPattern(parts: readonly string[]): string {
  const patterns = parts.map((part, index) => {
    const isLast = index === parts.length - 1
    if (part === '**') return isLast ? '.+' : '(?:[^/]+/)*'
    return partPattern(part) + (isLast ? '' : '/')
  })
  return patterns.join('')
}

function partPattern(part: string): string {
  let open = 0
  const patterns = (part.match(token) ?? []).map(one => {
    if (one === '*') return '[^/]*'
    if (one === '?') return '[^/]'
    if (one === '{') {
      open += 1
      return '(?:'
    }
    if (one === '}') {
      open -= 1
      return ')'
    }
    if (one === ',' && open > 0) return '|'
    if (one.startsWith('[')) return classPattern(one.slice(1, -1))
    return RE2JS.quote(one.startsWith('\\') ? one.slice(1) : one)
  })
  return patterns.join('')
}

/** The text between brackets. Only a leading `!` or `^`, and a `-` between two characters, are special in it. */
function classPattern(inner: string): string {
  const isNegated = inner.startsWith('!') || inner.startsWith('^')
  const characters = [...(isNegated ? inner.slice(1) : inner)]
  const ranges: string[] = []
  while (characters.length > 0) {
    const [first, dash, last] = characters
    if (dash === '-' && last !== undefined) {
      ranges.push(rangePattern(first!, last))
      characters.splice(0, 3)
    } else ranges.push(quoted(characters.shift()!))
  }
  return `[${isNegated ? '^/' : ''}${ranges.join('')}]`
}

/** No range may include `/`, which lies between `.` and `0`. */
function rangePattern(first: string, last: string): string {
  const isAcross = first <= '/' && last >= '/'
  return isAcross ? `${quoted(first)}-.0-${quoted(last)}` : `${quoted(first)}-${quoted(last)}`
}

const quoted = (character: string) => character.replace(/[\\[\]^-]/, '\\$&')
