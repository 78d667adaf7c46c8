/** Folders of files, and the chores for files, for tests that run them step by step. */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import type { TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { findInputs, putInPlace, sweepUploads } from '../../src/babysitter/chores.ts'
import { openFiles } from '../../src/files/files.ts'
import type { CommandPayload } from '../../src/kernel/datum.ts'
import { stagingOf } from '../../src/kernel/datum.ts'
import type { ReportedArtifact } from '../../src/protocol/files/artifacts.ts'
import type { ClaimedTask } from '../../src/protocol/tasks/sync.ts'
import type { Fresh } from './fresh.ts'

export interface Folder {
  readonly path: string
  /** Ends in `/`. */
  readonly uri: string
  write(files: Record<string, string>): Promise<void>
  /** The text of each file in it, by path. */
  read(): Promise<Record<string, string>>
}

export async function folder(t: TestContext): Promise<Folder> {
  const path = await mkdtemp(join(tmpdir(), 'pawl-files-'))
  t.after(() => rm(path, { recursive: true, force: true }))
  return {
    path,
    uri: `${pathToFileURL(path).href}/`,
    async write(files) {
      for (const [name, text] of Object.entries(files)) {
        await mkdir(dirname(join(path, name)), { recursive: true })
        await writeFile(join(path, name), text)
      }
    },
    async read() {
      const entries = await readdir(path, { recursive: true, withFileTypes: true })
      const files = entries.filter(entry => entry.isFile()).map(entry => join(entry.parentPath, entry.name))
      const texts = await Promise.all(files.map(async file => [relative(path, file), await readFile(file, 'utf8')]))
      return Object.fromEntries(texts.toSorted(([one], [other]) => (one! < other! ? -1 : 1)))
    },
  }
}

/** Runs the babysitter's file chores once. */
export async function doFileChores({ engine }: Pick<Fresh, 'engine'>): Promise<void> {
  for (const chore of [findInputs, putInPlace, sweepUploads]) await chore.run(engine.context)
}

/** Claims command tasks as a worker of that kind would. */
export async function claimCommands(f: Fresh, claim = 100, worker = 'w') {
  const { claimed } = await f.engine.sync({ worker, queues: ['command'], claim })
  return claimed as readonly (ClaimedTask & { payload: CommandPayload })[]
}

/** A worker's report about one file of a task. */
export function artifactOf(task: ClaimedTask, name: string, state: ReportedArtifact['state']): ReportedArtifact {
  const { outputs } = task.payload as CommandPayload
  const stagedUri = `${stagingOf(outputs!, task.id, task.epoch)}${name}`
  return { name, uri: `${outputs}${name}`, state, ...(state === 'registered' && { stagedUri }) }
}

/** Registers and uploads files as a worker does. Nothing is settled. */
export async function putOut(f: Fresh, task: ClaimedTask, files: Record<string, string>): Promise<void> {
  const names = Object.keys(files)
  const { id, epoch } = task
  await f.engine.reportArtifacts(id, epoch, { artifacts: names.map(name => artifactOf(task, name, 'registered')) })
  const kept = await upload(task, files)
  await f.engine.reportArtifacts(id, epoch, {
    artifacts: names.map(name => ({ ...artifactOf(task, name, 'uploaded'), ...kept[name] })),
  })
}

export async function upload(task: ClaimedTask, files: Record<string, string>) {
  const { outputs } = task.payload as CommandPayload
  const store = openFiles()
  const scratch = await mkdtemp(join(tmpdir(), 'pawl-put-'))
  const kept: Record<string, { size: number; sha256: string }> = {}
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(scratch, 'file'), text)
    kept[name] = await store.put(join(scratch, 'file'), `${stagingOf(outputs!, task.id, task.epoch)}${name}`)
  }
  await rm(scratch, { recursive: true })
  return kept
}

export async function succeed(f: Fresh, ...tasks: readonly ClaimedTask[]) {
  return f.engine.sync({
    worker: 'w',
    settled: tasks.map(({ id, epoch }) => ({ id, epoch, outcome: 'succeeded' as const })),
  })
}
