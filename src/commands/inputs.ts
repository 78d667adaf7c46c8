/** Brings a task's inputs to its folder, several at once. */
import { createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { FileStore } from '../files/file-store.ts'
import { encodePath } from '../files/uri.ts'
import type { DatumInput } from '../kernel/datum.ts'
import type { ArtifactPort } from '../protocol/artifacts.ts'
import { GiveUp } from '../worker/errors.ts'
import { asFailure } from './failure.ts'
import { inParallel } from './in-parallel.ts'
import { placeIn, shown } from './place.ts'

interface Wanted {
  readonly uri: string
  /** Of the folder of all inputs. */
  readonly path: string
  /** A mere mark that a folder exists, as some tools leave it in buckets. */
  readonly isFolder: boolean
}

export interface Fetching {
  readonly files: FileStore
  readonly folder: string
  readonly atOnce: number
  readonly signal: AbortSignal
  /** What an earlier stage has put out. */
  readonly ofStage: ArtifactPort['ofStage']
}

/**
 * An aborted signal ends it. Every file is made anew: where two names are one on this disk (they differ in case only,
 * or one is the folder of the other), the second is a failure that names it, and never writes over the first.
 */
export async function fetchInputs(inputs: readonly DatumInput[], fetching: Fetching): Promise<void> {
  const { folder, atOnce, signal } = fetching
  for (const { name } of inputs) {
    if (name.includes('/')) throw new GiveUp(`The input ${shown(name)} cannot be a folder here: its name holds a "/".`)
    await naming(name, () => mkdir(placeIn(folder, name), { recursive: true }))
  }
  await inParallel(wantedOf(inputs, fetching), atOnce, async wanted => {
    signal.throwIfAborted()
    await naming(wanted.path, () => fetchOne(wanted, fetching))
  })
  signal.throwIfAborted()
}

async function* wantedOf(inputs: readonly DatumInput[], { files, ofStage }: Fetching): AsyncGenerator<Wanted> {
  for (const { name, uri, path, stageId } of inputs) {
    if (!uri.endsWith('/')) {
      yield { uri, path: `${name}/${path}`, isFolder: false }
      continue
    }
    if (stageId !== undefined) {
      for await (const page of told(ofStage(stageId), name)) {
        const inside = page.filter(file => file.name.startsWith(path))
        yield* inside.map(file => ({ uri: file.uri, path: `${name}/${file.name}`, isFolder: false }))
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
    throw asFailure(error, `Listing the input ${shown(name)}`)
  }
}

async function fetchOne({ uri, path, isFolder }: Wanted, { files, folder, signal }: Fetching): Promise<void> {
  const place = placeIn(folder, path)
  await mkdir(isFolder ? place : dirname(place), { recursive: true })
  if (isFolder) return
  const bytes = await files.open(uri, signal)
  await pipeline(bytes, createWriteStream(place, { flags: 'wx' }), { signal })
}

const clashes: readonly (string | undefined)[] = ['EEXIST', 'ENOTDIR', 'EISDIR']
const impossible: readonly (string | undefined)[] = ['ENAMETOOLONG', 'EILSEQ', 'EINVAL']

/** Says which input the disk had something against. */
async function naming(path: string, write: () => Promise<unknown>): Promise<void> {
  try {
    await write()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (clashes.includes(code)) {
      const why = 'another input lies there: it has the same name, or one that this disk does not tell apart'
      throw new GiveUp(`The input ${shown(path)} has no place: ${why}.`, { cause: error })
    }
    if (impossible.includes(code)) {
      throw new GiveUp(`The input ${shown(path)} cannot be a file here: ${message}`, { cause: error })
    }
    throw asFailure(error, `Fetching the input ${shown(path)}`)
  }
}
