/** Runs command tasks without a store: with real processes, files in memory, and control of each attempt. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { type CommandTaskOptions, commandTask } from '../../src/commands/command-task.ts'
import { newId } from '../../src/kernel/id.ts'
import type { RegisteredFile, UploadedFile } from '../../src/protocol/files/artifacts.ts'
import type { SettledTask } from '../../src/protocol/tasks/sync.ts'
import { interrupt, newAttempt, runAttempt } from '../../src/worker/attempt.ts'
import type { InterruptReason } from '../../src/worker/errors.ts'
import { eventually } from './eventually.ts'
import { type Shelf, shelf } from './shelf.ts'

export interface Doing {
  readonly id: string
  readonly settled: Promise<SettledTask>
  interrupt(reason: InterruptReason, graceSeconds?: number): void
  /** The log lines so far. */
  lines(): string[]
  logged(fact: string, text: string): Promise<string>
}

export interface CommandRig {
  readonly folder: string
  readonly files: Shelf
  readonly registered: RegisteredFile[]
  readonly uploaded: UploadedFile[]
  start(payload: unknown, more?: { timeoutSeconds?: number }): Doing
  run(payload: unknown): Promise<SettledTask & { readonly lines: readonly string[] }>
  /** Like `run`, for a shell script. */
  script(text: string, more?: object): Promise<SettledTask & { readonly lines: readonly string[] }>
  /** Files that attempts have left behind. */
  leftovers(): string[]
}

/** A folder of the test's own. */
export function ownFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-command-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export function commandRig(t: TestContext, files = shelf(), options: Partial<CommandTaskOptions> = {}): CommandRig {
  const folder = join(ownFolder(t), 'attempts')
  const registered: RegisteredFile[] = []
  const uploaded: UploadedFile[] = []
  const port = {
    register: async (some: readonly RegisteredFile[]) => void registered.push(...some),
    uploaded: async (some: readonly UploadedFile[]) => void uploaded.push(...some),
    async *ofStage() {},
  }
  const task = commandTask({ files, folder, artifactsOf: () => port, ...options })
  const start: CommandRig['start'] = (payload, { timeoutSeconds } = {}) => {
    const held = newAttempt(claimed(payload, timeoutSeconds ?? null), performance.now())
    const settled = runAttempt(held, (value, ctx) => task.run(value, ctx), {
      saveCheckpoint: async () => {},
      completeIn: async () => {},
      reportFiles: async () => {},
      async *filesOf() {},
      jobOfStage: () => Promise.reject(new Error('These tasks belong to no job.')),
    }).then(report => {
      held.settled = report
      return report
    })
    t.after(async () => {
      interrupt(held, 'lease-lost')
      await settled
    })
    const lines = () => (held.log?.last(performance.now()) ?? []).map(({ message }) => message)
    return {
      id: held.task.id,
      settled,
      interrupt: (reason, grace) => interrupt(held, reason, grace),
      lines,
      logged: (fact, text) => eventually(fact, () => lines().find(line => line.includes(text))),
    }
  }
  const run: CommandRig['run'] = async payload => {
    const doing = start(payload)
    return { ...(await doing.settled), lines: doing.lines() }
  }
  return {
    folder,
    files,
    registered,
    uploaded,
    start,
    run,
    script: (text, { ...more } = {}) => run({ ...more, run: { command: ['sh', '-c', text], ...runOf(more) } }),
    leftovers: () => readdirSync(folder),
  }
}

const runOf = (more: { readonly run?: object }) => more.run ?? {}

function claimed(payload: unknown, timeoutSeconds: number | null) {
  return {
    id: newId(),
    epoch: 3,
    type: 'command',
    payload,
    attempt: 2,
    checkpoint: null,
    careful: false,
    leaseUntil: new Date(8.64e15).toISOString(),
    leaseSeconds: Number.POSITIVE_INFINITY,
    heartbeatSeconds: null,
    timeoutSeconds,
    correlationId: null,
    traceparent: null,
    jobId: null,
    stageId: null,
  }
}

/** Whether a process is running, and not a zombie. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    if (process.platform !== 'linux') return true
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) !== 'Z'
  } catch {
    return false
  }
}

/** The numbers in the lines of a log that begin with a word. */
export function pidsIn(lines: readonly string[], word = 'pid'): number[] {
  return lines.filter(line => line.startsWith(`${word} `)).map(line => Number(line.slice(word.length + 1)))
}
