/**
 * Reads the text of a spec as YAML. JSON is YAML too, but parses a hundred times slower as YAML, so it is parsed as JSON.
 * There, the last of duplicate keys wins, as usual in JSON. In YAML, duplicate keys are refused.
 */
import {
  CST,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type YAMLMap,
} from 'yaml'
import type { Fault } from './faults.ts'
import { longestYaml, parseBoundedJson } from './json-bounds.ts'

/**
 * Tokens of the library's lexer: words, signs, spaces, line ends. Adding one to a document takes a few microseconds and a
 * few hundred bytes, and more if it is a fault.
 */
const mostLexemes = 300_000

/** Later faults are mostly consequences of the first ones. */
const mostFaults = 100
const longestFault = 1000

/** A few nested aliases can expand to billions of values. */
const mostValues = 10_000_000

export function readYaml(text: string): { value: unknown } | { faults: Fault[] } {
  if (/^\s*\{/.test(text)) {
    try {
      return { value: parseBoundedJson(text) }
    } catch {
      // The YAML parser reports the place of the fault, or the text is YAML after all.
    }
  }
  if (text.length > longestYaml)
    return refused(`must have at most ${longestYaml} characters as YAML; JSON may have more`)
  const fault = boundsFault(text)
  return fault === undefined ? parsed(text) : refused(fault)
}

/** No real spec comes near it, and the library's recursion stays far from the end of the stack. */
const mostLevels = 200
const mostIndentation = 500

/**
 * Counts tokens and levels before the library builds a tree, which takes a thousand times the memory of the text. The
 * library's recursion must never reach the end of the stack: compiling a regular expression there ends the process
 * without an error that could be caught. Levels are opened by brackets, by consecutive indicators on a line (`- - - x`)
 * and by indentation.
 */
function boundsFault(text: string): string | undefined {
  const tooDeep = `is nested more than ${mostLevels} levels deep`
  let lexemes = 0
  let brackets = 0
  let indicators = 0
  let isContent = false
  let isLineStart = true
  for (const lexeme of new Lexer().lex(text)) {
    lexemes += 1
    if (lexemes > mostLexemes)
      return `has more than ${mostLexemes.toLocaleString('en')} words, signs and line ends as YAML; JSON may have more`
    // The content of a scalar follows its marker, and may look like any token.
    if (isContent) {
      isContent = false
      continue
    }
    const type = CST.tokenType(lexeme)
    if (type === 'scalar') isContent = true
    else if (type === 'newline') indicators = 0
    else if (type === 'flow-seq-start' || type === 'flow-map-start') brackets += 1
    else if (type === 'flow-seq-end' || type === 'flow-map-end') brackets -= 1
    else if (type === 'seq-item-ind' || type === 'explicit-key-ind' || type === 'map-value-ind') indicators += 1
    else if (type === 'space' && isLineStart && lexeme.length > mostIndentation) return tooDeep
    if (brackets > mostLevels || (brackets === 0 && indicators > mostLevels)) return tooDeep
    if (brackets < -mostLevels) return 'closes a bracket that was not opened'
    isLineStart = type === 'newline'
  }
  return undefined
}

function refused(why: string) {
  return { faults: [{ at: 'spec', why }] }
}

function parsed(text: string): { value: unknown } | { faults: Fault[] } {
  const lines = new LineCounter()
  const faults: Fault[] = []
  const refuse = (offset: number, why: string) => {
    if (faults.length === mostFaults) return
    const { line, col } = lines.linePos(offset)
    faults.push({ at: `line ${line}, column ${col}`, why: why.slice(0, longestFault) })
  }
  // The library's own checks compare all pairs of keys, and search the whole document for every alias. `read` does not.
  const written = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false })
  for (const { message, pos } of [...written.errors, ...written.warnings]) refuse(pos[0], message)
  if (faults.length > 0) return { faults }
  const value = read(written.contents, { anchors: new Map(), refuse })
  if (faults.length > 0) return { faults }
  return sizeOf(value) > mostValues ? refused(`expands to more than ${mostValues} values`) : { value }
}

interface Reading {
  /** Anchors so far, which an alias may refer to. */
  readonly anchors: Map<string, unknown>
  refuse(offset: number, why: string): void
}

function read(node: unknown, reading: Reading): unknown {
  if (isAlias(node)) {
    if (!reading.anchors.has(node.source))
      reading.refuse(startOf(node), `*${node.source} is used inside the value that it names`)
    return reading.anchors.get(node.source)
  }
  const value = isMap(node)
    ? objectOf(node, reading)
    : isSeq(node)
      ? node.items.map(one => read(one, reading))
      : plain(node)
  const anchor = (node as Partial<YAMLMap> | null)?.anchor
  if (anchor !== undefined) reading.anchors.set(anchor, value)
  return value
}

function objectOf({ items }: YAMLMap, reading: Reading): Record<string, unknown> {
  const found = new Map<string, unknown>()
  for (const { key, value } of items as Pair<Node, unknown>[]) {
    const name = String(read(key, reading))
    if (!isScalar(key)) reading.refuse(startOf(key), 'a key must be a string')
    else if (found.has(name)) reading.refuse(startOf(key), `the key '${name}' stands twice`)
    found.set(name, read(value, reading))
  }
  return Object.fromEntries(found)
}

function plain(node: unknown): unknown {
  return isScalar(node) ? node.value : null
}

function startOf(node: Node | null): number {
  return node?.range?.[0] ?? 0
}

/** Number of values after expanding aliases. */
function sizeOf(value: unknown, known = new Map<object, number>()): number {
  if (typeof value !== 'object' || value === null) return 1
  const counted = known.get(value)
  if (counted !== undefined) return counted
  const size = Object.values(value).reduce((sum: number, inner) => sum + sizeOf(inner, known), 1)
  known.set(value, size)
  return size
}
