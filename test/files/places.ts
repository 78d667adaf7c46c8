/** The stores on which the same contract is tested: a folder, a real S3 server, and our own small one. */
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Entry, FileStore, ListAsk, S3Options } from '../../src/files/file-store.ts'
import { openFiles } from '../../src/files/files.ts'
import { joinUri, uriOf } from '../../src/files/uri.ts'
import { credentials, startS3rver } from './s3rver.ts'
import { type SmallS3, startSmallS3 } from './small-s3.ts'

export interface Place {
  readonly files: FileStore
  /** The URI of an empty folder. */
  fresh(): Promise<string>
  close(): Promise<void>
}

export const places: Readonly<Record<string, () => Promise<Place>>> = {
  'file://': folderPlace,
  s3rver: async () => s3Place(await startS3rver()),
  'a small S3': async () => s3Place(await startSmallS3()),
}

async function folderPlace(): Promise<Place> {
  const root = await mkdtemp(join(tmpdir(), 'pawl-files-'))
  return {
    files: openFiles(),
    async fresh() {
      const folder = join(root, randomUUID())
      await mkdir(folder)
      return folderUri(folder)
    },
    close: () => rm(root, { recursive: true, force: true }),
  }
}

function s3Place(server: { endpoint: string; close(): Promise<void> }): Place {
  const files = openFiles({ s3: { endpoint: server.endpoint, credentials } })
  return {
    files,
    fresh: async () => `s3://bucket/${randomUUID()}/`,
    async close() {
      await files.close()
      await server.close()
    },
  }
}

export interface SmallPlace {
  readonly s3: SmallS3
  readonly files: FileStore
}

/** A small S3 and a file store on it, for the duration of the test. */
export async function withSmallS3(
  use: (place: SmallPlace) => Promise<void>,
  { keepsBytes = true, ...options }: S3Options & { keepsBytes?: boolean } = {},
): Promise<void> {
  const s3 = await startSmallS3({ keepsBytes })
  const files = openFiles({ s3: { endpoint: s3.endpoint, credentials, ...options } })
  try {
    await use({ s3, files })
  } finally {
    await files.close()
    await s3.close()
  }
}

/** A local folder for the duration of the test. */
export async function withFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'pawl-folder-'))
  try {
    await use(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

export function folderUri(folder: string): string {
  return uriOf({ scheme: 'file', bucket: '', path: `${folder.slice(1)}/` })
}

export async function putText(files: FileStore, folder: string, path: string, text = path) {
  const file = join(tmpdir(), `pawl-text-${randomUUID()}`)
  await writeFile(file, text)
  try {
    return await files.put(file, joinUri(folder, path))
  } finally {
    await rm(file)
  }
}

export async function readText(files: FileStore, uri: string): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of await files.open(uri)) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

export async function listed(files: FileStore, folder: string, ask?: ListAsk): Promise<string[]> {
  return (await entriesOf(files, folder, ask)).map(({ path }) => path)
}

export async function entriesOf(files: FileStore, folder: string, ask?: ListAsk): Promise<Entry[]> {
  const entries: Entry[] = []
  for await (const page of files.list(folder, ask)) entries.push(...page)
  return entries
}
