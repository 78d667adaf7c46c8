/**
 * Applies the source maps of compiled code to the stacks of errors. The maps are read when a handler throws: until then
 * they cost nothing, and they are found whenever the code was loaded. Node's own support (`--enable-source-maps`) sees
 * only modules that are loaded after it was switched on, and slows down every error of the process.
 */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { normalize } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type Frame, isUsersFile, pathOf, readFrame, writeFrame } from '../kernel/stack.ts'

/** The places of a compiled file in its sources. Null: it has no source map. */
interface Mapping {
  readonly map: SourceMap
  /** The URL that the names of the sources are relative to. */
  readonly base: string
}

/** Limit for one stack. Node records 10 frames by default. */
const mostFrames = 50
/** As many characters of a stack as are stored with its error. */
const longestStack = 10_000
const mostFiles = 100
/** Limit for one file. */
const mostBytes = 16 * 2 ** 20
/** Limit for all maps that are kept in memory, by their size as text. */
const mostBytesKept = 64 * 2 ** 20
/** By compiled file, the one that was read first at the front. */
const mappings = new Map<string, { readonly mapping: Mapping | null; readonly bytes: number }>()
let bytesKept = 0

const ownFolder = fileURLToPath(new URL('..', import.meta.url))

/** Whether a file is a part of Pawl. */
export const isOwnFile = (path: string): boolean => normalize(path).startsWith(ownFolder)

/**
 * Names the source files in a stack of compiled code. Never throws: a line without a usable map stays as it is, and so
 * does everything after the limits.
 */
export function mapStack(stack: string): string {
  if (!stack.includes('\n')) return stack
  // Node has applied the maps itself.
  if ((process as { sourceMapsEnabled?: boolean }).sourceMapsEnabled === true) return stack
  // A line is mapped as a whole or not at all: half of a line number is another number.
  const end = stack.indexOf('\n', longestStack)
  const head = end < 0 ? stack : stack.slice(0, end)
  let frames = 0
  const lines = head.split('\n').map(text => {
    const frame = frames < mostFrames ? readFrame(text) : undefined
    if (frame === undefined || !isUsersFile(frame.file) || isOwnFile(pathOf(frame.file))) return text
    frames += 1
    return mapFrame(frame, text)
  })
  return lines.join('\n') + (end < 0 ? '' : stack.slice(end))
}

function mapFrame(frame: Frame, text: string): string {
  const path = pathOf(frame.file)
  try {
    const mapping = mappingOf(path)
    const found = mapping?.map.findEntry(frame.line - 1, frame.column - 1)
    if (mapping == null || found === undefined || !('originalSource' in found)) return text
    const { originalSource, originalLine, originalColumn } = found
    // A part of the code that the compiler added has no source, which the types of Node do not say.
    if (typeof originalSource !== 'string') return text
    const url = new URL(originalSource, mapping.base)
    const [line, column] = [originalLine + 1, originalColumn + 1]
    if (url.protocol === 'file:') return writeFrame({ ...frame, file: fileURLToPath(url), line, column })
    return withSource(frame, `${url.href}:${line}:${column}`) ?? text
  } catch {
    return text
  }
}

/**
 * The line with the place in its source before the compiled place: `at run [webpack://shop/a.ts:1:1] (/app/main.js:2:1)`.
 * Bundlers may name sources by URLs of their own, which do not say where a file is.
 */
function withSource({ before, after, ...place }: Frame, source: string): string | undefined {
  if (source.length > longestSource) return undefined
  const isOpen = before.endsWith('(')
  const start = isOpen ? before.slice(0, -1) : before
  return writeFrame({ ...place, before: `${start}[${source}] (`, after: isOpen ? after : `)${after}` })
}

const longestSource = 1000

function mappingOf(path: string): Mapping | null {
  const known = mappings.get(path)
  if (known !== undefined) return known.mapping
  let read: { mapping: Mapping | null; bytes: number } = { mapping: null, bytes: 0 }
  try {
    read = readMapping(path) ?? read
  } catch {
    // An unreadable map is like none.
  }
  mappings.set(path, read)
  bytesKept += read.bytes
  for (const [oldest, { bytes }] of mappings) {
    if (mappings.size <= mostFiles && bytesKept <= mostBytesKept) break
    mappings.delete(oldest)
    bytesKept -= bytes
  }
  return read.mapping
}

const mark = '//# sourceMappingURL='

function readMapping(path: string): { mapping: Mapping; bytes: number } | null {
  if (!isReadable(path)) return null
  const code = readFileSync(path, 'utf8')
  const at = code.lastIndexOf(mark)
  if (at < 0 || (at > 0 && code[at - 1] !== '\n')) return null
  const [address = ''] = code.slice(at + mark.length).split('\n', 1)
  const url = new URL(address.trim(), pathToFileURL(path))
  const text = url.protocol === 'data:' ? textOfData(address.trim()) : textOfFile(url)
  if (text === undefined) return null
  const payload = JSON.parse(text)
  const home = url.protocol === 'data:' ? pathToFileURL(path) : url
  const root = typeof payload.sourceRoot === 'string' ? payload.sourceRoot.replace(/([^/])$/, '$1/') : ''
  return { mapping: { map: new SourceMap(payload), base: new URL(root, home).href }, bytes: text.length }
}

/** A stack may name a device or a pipe, which must not be read. */
function isReadable(path: string): boolean {
  if (!existsSync(path)) return false
  const stats = statSync(path)
  return stats.isFile() && stats.size <= mostBytes
}

function textOfFile(url: URL): string | undefined {
  if (url.protocol !== 'file:') return undefined
  const path = fileURLToPath(url)
  return isReadable(path) ? readFileSync(path, 'utf8') : undefined
}

function textOfData(address: string): string | undefined {
  const [, isBase64, data = ''] = /^data:[^,]*?(;base64)?,(.*)$/s.exec(address) ?? []
  return isBase64 === undefined ? decodeURIComponent(data) : Buffer.from(data, 'base64').toString()
}
