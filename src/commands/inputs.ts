/** Downloads the inputs of a task to its folder, several at once. */
import { createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { FileStore } from '../files/file-store.ts'
import { encodePath } from '../files/uri.ts'
import type { DatumInput } from '../kernel/datum.ts'
import type { ArtifactPort } from '../protocol/files/artifacts.ts'
import { GiveUp } from '../worker/errors.ts'
import { toAttemptError } from './attempt-error.ts'
import { inParallel } from './in-parallel.ts'
import { joinInside, quote } from './safe-path.ts'

interface Wanted {
  readonly uri: string
  /** Relative to the folder of all inputs. */
  readonly path: string
  /** The version that was listed, if the file must not have changed since. */
  readonly version?: string
  /** An empty folder marker, as some tools leave them in buckets. */
  readonly isFolder: boolean
}

export interface Fetching {
  readonly files: FileStore
  readonly folder: string
  readonly atOnce: number
  readonly signal: AbortSignal
  /** Files must be unchanged since they were listed. */
  readonly exact: boolean
  /** The outputs of an earlier stage. */
  readonly ofStage: ArtifactPort['ofStage']
}

/**
 * Stops when the signal aborts. Every file must be new: if two names are the same on this disk (they differ only in
 * case, or one is the folder of the other), the second fails with an error that names it, and never overwrites the
 * first.
 */
export async function fetchInputs(inputs: readonly DatumInput[], fetching: Fetching): Promise<void> {
  const { folder, atOnce, signal } = fetching
  for (const { name } of inputs) {
    if (name.includes('/')) throw new GiveUp(`The input ${quote(name)} cannot be a folder here: its name holds a "/".`)
    await naming(name, () => mkdir(joinInside(folder, name), { recursive: true }))
  }
  await inParallel(wantedOf(inputs, fetching), atOnce, async wanted => {
    signal.throwIfAborted()
    await naming(wanted.path, () => fetchOne(wanted, fetching))
  })
  signal.throwIfAborted()
}

async function* wantedOf(inputs: readonly DatumInput[], { files, ofStage, exact }: Fetching): AsyncGenerator<Wanted> {
  for (const { name, uri, path, version, stageId } of inputs) {
    if (!uri.endsWith('/')) {
      yield { uri, path: `${name}/${path}`, isFolder: false, ...(exact && version !== undefined && { version }) }
      continue
    }
    if (stageId !== undefined) {
      for await (const page of told(ofStage(stageId, path), name)) {
        yield* page.map(file => ({ uri: file.uri, path: `${name}/${file.name}`, isFolder: false }))
      }
      continue
    }
    for await (const page of told(files.list(uri, { deep: true }), name)) {
      for (const entry of page) {
        const whole = `${name}/${path}${entry.path}`
        const isFolder = entry.path.endsWith('/') || entry.path === ''
        yield { uri: uri + encodePath(entry.path), path: isFolder ? whole.slice(0, -1) : whole, isFolder }
      }
    }
  }
}

async function* told<T>(pages: AsyncIterable<T>, name: string): AsyncGenerator<T> {
  try {
    yield* pages
  } catch (error) {
    throw toAttemptError(error, `Listing the input ${quote(name)}`)
  }
}

async function fetchOne(wanted: Wanted, { files, folder, signal }: Fetching): Promise<void> {
  const { uri, path, isFolder } = wanted
  const place = joinInside(folder, path)
  await mkdir(isFolder ? place : dirname(place), { recursive: true })
  if (isFolder) return
  const bytes = await files.open(uri, signal)
  await pipeline(bytes, createWriteStream(place, { flags: 'wx' }), { signal })
  // Checked after the last byte: whatever was read before had this version, or the file is gone.
  if (wanted.version !== undefined) await checkVersion(files, wanted as Wanted & { version: string })
}

async function checkVersion(files: FileStore, { uri, path, version }: Wanted & { version: string }): Promise<void> {
  const stat = await files.stat(uri)
  // The version of an earlier stage's output is its checksum, which not every storage keeps.
  const isOfStage = /^[0-9a-f]{64}$/.test(version)
  if (stat?.version === version || (isOfStage && stat !== undefined && (stat.sha256 ?? version) === version)) return
  const why = 'what is made of it could be taken for what would have been made of the file that was found'
  throw new GiveUp(`The input ${quote(path)} has changed since it was found, and ${why}.`)
}

const clashes: readonly (string | undefined)[] = ['EEXIST', 'ENOTDIR', 'EISDIR']
const impossible: readonly (string | undefined)[] = ['ENAMETOOLONG', 'EILSEQ', 'EINVAL']

/** Adds the name of the input to an error of the file system. */
async function naming(path: string, write: () => Promise<unknown>): Promise<void> {
  try {
    await write()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (clashes.includes(code)) {
      const why = 'another input lies there: it has the same name, or one that this disk does not tell apart'
      throw new GiveUp(`The input ${quote(path)} has no place: ${why}.`, { cause: error })
    }
    if (impossible.includes(code)) {
      throw new GiveUp(`The input ${quote(path)} cannot be a file here: ${message}`, { cause: error })
    }
    throw toAttemptError(error, `Fetching the input ${quote(path)}`)
  }
}
