/**
 * Applies the source maps of compiled code to the stacks of errors. The maps are read when a handler throws: until then
 * they cost nothing, and they are found whenever the code was loaded. Node's own support (`--enable-source-maps`) sees
 * only modules that are loaded after it was switched on, and slows down every error of the process.
 */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { isUsersFile, pathOf, readFrame, writeFrame } from '../kernel/stack.ts'

/** The places of a compiled file in its sources. Null: it has no source map. */
interface Mapping {
  readonly map: SourceMap
  /** The URL that the names of the sources are relative to. */
  readonly base: string
}

const mostFiles = 100
const mostBytes = 64 * 2 ** 20
const mappings = new Map<string, Mapping | null>()

const ownFolder = fileURLToPath(new URL('..', import.meta.url))

/** Whether a file is a part of Pawl. */
export const isOwnFile = (path: string): boolean => path.startsWith(ownFolder)

/** Names the source files in a stack of compiled code. Never throws: a line without a usable map stays as it is. */
export function mapStack(stack: string): string {
  if (!stack.includes('\n')) return stack
  // Node has applied the maps itself.
  if ((process as { sourceMapsEnabled?: boolean }).sourceMapsEnabled === true) return stack
  return stack.split('\n').map(mapLine).join('\n')
}

function mapLine(text: string): string {
  const frame = readFrame(text)
  if (frame === undefined || !isUsersFile(frame.file)) return text
  const path = pathOf(frame.file)
  if (isOwnFile(path)) return text
  try {
    const mapping = mappingOf(path)
    const found = mapping?.map.findEntry(frame.line - 1, frame.column - 1)
    if (mapping == null || found === undefined || !('originalSource' in found)) return text
    const { originalSource, originalLine, originalColumn } = found
    const file = fileOf(originalSource, mapping.base)
    return writeFrame({ ...frame, file, line: originalLine + 1, column: originalColumn + 1 })
  } catch {
    return text
  }
}

/** The path of a source. Bundlers may name it by a URL of their own, such as `webpack://`. */
function fileOf(source: string, base: string): string {
  const url = new URL(source, base)
  return url.protocol === 'file:' ? fileURLToPath(url) : url.href
}

function mappingOf(path: string): Mapping | null {
  const known = mappings.get(path)
  if (known !== undefined) return known
  let mapping: Mapping | null = null
  try {
    mapping = readMapping(path)
  } catch {
    // An unreadable map is like none.
  }
  if (mappings.size >= mostFiles) mappings.clear()
  mappings.set(path, mapping)
  return mapping
}

const mark = '//# sourceMappingURL='

function readMapping(path: string): Mapping | null {
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
  return { map: new SourceMap(payload), base: new URL(root, home).href }
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
