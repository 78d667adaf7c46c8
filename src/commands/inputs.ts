/** Downloads the inputs of a task to its folder, several at once. */
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { FileStore } from '../files/file-store.ts'
import { checkLocalPath, encodePath } from '../files/uri.ts'
import type { DatumInput } from '../kernel/datum.ts'
import type { ArtifactPort } from '../protocol/files/artifacts.ts'
import { GiveUp } from '../worker/errors.ts'
import { quote, toAttemptError } from './attempt-error.ts'
import { inParallel } from './in-parallel.ts'

interface WantedFile {
  readonly uri: string
  /** Relative to the folder of all inputs. */
  readonly path: string
  /** The version that was listed, if the file must not have changed since. */
  readonly version?: string
  /** An empty folder marker, as some tools leave them in buckets. */
  readonly isFolder: boolean
}

export interface FetchOptions {
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
export async function fetchInputs(inputs: readonly DatumInput[], options: FetchOptions): Promise<void> {
  const { folder, atOnce, signal } = options
  for (const name of new Set(inputs.map(input => input.name))) {
    if (name.includes('/')) throw new GiveUp(`The input ${quote(name)} cannot be a folder: its name contains a "/".`)
    await withInputName(name, () => mkdir(joinInside(folder, name), { recursive: true }))
  }
  await inParallel(filesOf(inputs, options), atOnce, async wanted => {
    signal.throwIfAborted()
    await withInputName(wanted.path, () => fetchOne(wanted, options))
  })
  signal.throwIfAborted()
}

async function* filesOf(
  inputs: readonly DatumInput[],
  { files, ofStage, exact }: FetchOptions,
): AsyncGenerator<WantedFile> {
  for (const { name, uri, path, version, stageId } of inputs) {
    if (!uri.endsWith('/')) {
      yield { uri, path: `${name}/${path}`, isFolder: false, ...(exact && version !== undefined && { version }) }
      continue
    }
    if (stageId !== undefined) {
      for await (const page of withListError(ofStage(stageId, path), name)) {
        yield* page.map(file => ({ uri: file.uri, path: `${name}/${file.name}`, isFolder: false }))
      }
      continue
    }
    for await (const page of withListError(files.list(uri, { deep: true }), name)) {
      for (const entry of page) {
        const whole = `${name}/${path}${entry.path}`
        const isFolder = entry.path.endsWith('/') || entry.path === ''
        yield { uri: uri + encodePath(entry.path), path: isFolder ? whole.slice(0, -1) : whole, isFolder }
      }
    }
  }
}

async function* withListError<T>(pages: AsyncIterable<T>, name: string): AsyncGenerator<T> {
  try {
    yield* pages
  } catch (error) {
    throw toAttemptError(error, `Listing the input ${quote(name)}`)
  }
}

/** Names come from buckets and payloads and are untrusted. The path never leaves the folder. */
function joinInside(folder: string, path: string): string {
  checkLocalPath(path)
  return join(folder, path)
}

async function fetchOne(wanted: WantedFile, { files, folder, signal }: FetchOptions): Promise<void> {
  const { uri, path, isFolder } = wanted
  const place = joinInside(folder, path)
  const parent = isFolder ? place : dirname(place)
  // The folders of the inputs themselves exist.
  if (dirname(parent) !== folder) await mkdir(parent, { recursive: true })
  if (isFolder) return
  const bytes = await files.open(uri, signal)
  try {
    await writeFile(place, bytes, { flag: 'wx', signal })
  } finally {
    bytes.destroy()
  }
  // Checked after the last byte: whatever was read before had this version, or the file is gone.
  if (wanted.version !== undefined) await checkVersion(files, wanted as WantedFile & { version: string })
}

async function checkVersion(files: FileStore, { uri, path, version }: WantedFile & { version: string }): Promise<void> {
  const stat = await files.stat(uri)
  // The version of an earlier stage's output is its checksum, which not every storage keeps.
  const isOfStage = /^[0-9a-f]{64}$/.test(version)
  if (stat?.version === version || (isOfStage && stat !== undefined && (stat.sha256 ?? version) === version)) return
  const why = 'its outputs could be reused for the version that was listed'
  throw new GiveUp(`The input ${quote(path)} has changed since it was listed, and ${why}.`)
}

const clashes: readonly (string | undefined)[] = ['EEXIST', 'ENOTDIR', 'EISDIR']
const impossible: readonly (string | undefined)[] = ['ENAMETOOLONG', 'EILSEQ', 'EINVAL']

/** Adds the name of the input to an error of the file system. */
async function withInputName(path: string, write: () => Promise<unknown>): Promise<void> {
  try {
    await write()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (clashes.includes(code)) {
      const why = 'another input has the same name, or one that this disk treats as the same'
      throw new GiveUp(`The input ${quote(path)} cannot be written: ${why}.`, { cause: error })
    }
    if (impossible.includes(code)) {
      throw new GiveUp(`The input ${quote(path)} cannot be a file here: ${message}`, { cause: error })
    }
    throw toAttemptError(error, `Fetching the input ${quote(path)}`)
  }
}
