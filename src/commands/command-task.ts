/**
 * Tasks of type `command`: a program over files. Each attempt has a folder of its own, which goes with it; what the
 * program leaves in its folder for outputs is sent under a prefix that is this attempt's alone, and becomes the task's
 * if the attempt wins.
 */
import { resolve } from 'node:path'
import type { FileStore } from '../files/file-store.ts'
import { type CommandPayload, commandType, type RunPlan } from '../kernel/datum.ts'
import type { ArtifactPort, UploadedFile } from '../protocol/files/artifacts.ts'
import { callback, checkOptions, type Fields, field, number, text } from '../schema/check.ts'
import type { TaskContext } from '../worker/context.ts'
import { defineTask, type Task } from '../worker/define-task.ts'
import { GiveUp } from '../worker/errors.ts'
import { type AttemptFolder, defaultFolder, makeAttemptFolder, openFolder, removeFolder } from './attempt-folder.ts'
import { fetchInputs } from './inputs.ts'
import { takeMount } from './mount.ts'
import { scanOutputs } from './outputs.ts'
import { readPayload } from './payload.ts'
import { runCommand } from './run-command.ts'
import { maskFor, readSecrets } from './secrets.ts'
import { upload } from './upload.ts'

export interface CommandTaskOptions {
  /** Where inputs lie and outputs go. */
  readonly files: FileStore
  /** Holds the folders of attempts. Default: one for each user, in the system's folder for what passes. */
  readonly folder?: string
  /** Holds secrets, as `<secret>/<key>`. Default: the worker's environment alone. */
  readonly secretsFolder?: string
  /** Where an attempt tells of its files. Default: its context's own, where the engine has one. */
  readonly artifactsOf?: (ctx: TaskContext) => ArtifactPort | undefined
  /** Inputs of a task that are fetched at once, and outputs that are sent. Default 8. */
  readonly transfers?: number
}

const fields: Fields = {
  files: field({}, value => (typeof value === 'object' && value !== null ? undefined : 'be what openFiles() gives')),
  folder: text(2000),
  secretsFolder: text(2000),
  artifactsOf: callback,
  transfers: number({ from: 1, to: 1000, whole: true }),
}

export interface CommandOutput {
  /** The first of them; where there are more, `count` says so. */
  readonly files: readonly UploadedFile[]
  readonly count: number
  readonly exitCode: 0
  /** How long the command ran. */
  readonly seconds: number
}

const mostListed = 1000

type Settings = Required<Omit<CommandTaskOptions, 'secretsFolder'>> & Pick<CommandTaskOptions, 'secretsFolder'>

export function commandTask(options: CommandTaskOptions): Task<unknown> {
  checkOptions(options, fields, 'commandTask')
  const settings: Settings = {
    transfers: 8,
    artifactsOf: artifactsIn,
    ...options,
    folder: resolve(options.folder ?? defaultFolder()),
  }
  let isOpen = false
  return defineTask({
    type: commandType,
    async handler(given: unknown, ctx: TaskContext): Promise<CommandOutput> {
      ctx.step('input')
      const payload = readPayload(given)
      if (!isOpen) await openFolder(settings.folder)
      isOpen = true
      const folder = await makeAttemptFolder(settings.folder)
      try {
        return await attempt(payload, folder, settings, ctx)
      } finally {
        await removeFolder(folder.path).catch(error => ctx.log.warn('The folder stays behind.', { error }))
      }
    },
  })
}

async function attempt(
  { run, inputs, outputs, exact }: CommandPayload,
  folder: AttemptFolder,
  settings: Settings,
  ctx: TaskContext,
): Promise<CommandOutput> {
  const { files, secretsFolder, transfers } = settings
  const artifacts = outputs === null ? undefined : settings.artifactsOf(ctx)
  if (outputs !== null && artifacts === undefined) {
    throw new GiveUp('The engine of this worker keeps no account of files, so the outputs cannot be kept.')
  }
  const secrets = await readSecrets(run.secrets, secretsFolder, process.env)
  const env = environmentOf(folder, ctx, run, secrets, process.env)
  const mask = maskFor(Object.values(secrets))

  ctx.step('fetch')
  const { ofStage } = settings.artifactsOf(ctx) ?? ctx.artifacts
  await fetchInputs(inputs, {
    files,
    folder: folder.in,
    atOnce: transfers,
    signal: ctx.signal,
    exact: exact === true,
    ofStage,
  })

  ctx.step('input')
  const names = [...new Set(inputs.map(({ name }) => name))]
  const passMount = run.mount === null ? undefined : await takeMount(run.mount, names, folder, ctx.signal)
  let ran: { seconds: number }
  try {
    ctx.step('exec')
    ran = await runCommand({ run, cwd: folder.scratch, env, mask }, ctx)
  } finally {
    await passMount?.()
  }

  ctx.step('output')
  const kept =
    outputs === null || artifacts === undefined
      ? []
      : await upload(await scanOutputs(folder.out), { files, artifacts, outputs, atOnce: transfers, ctx })
  return { files: kept.slice(0, mostListed), count: kept.length, exitCode: 0, ...ran }
}

function artifactsIn(ctx: TaskContext & { readonly artifacts?: ArtifactPort }): ArtifactPort | undefined {
  return ctx.artifacts
}

/** All that a command sees of its surroundings. Nothing of the worker's own environment but PATH and LANG. */
function environmentOf(
  folder: AttemptFolder,
  ctx: TaskContext,
  run: RunPlan,
  secrets: Readonly<Record<string, string>>,
  worker: NodeJS.ProcessEnv,
): Record<string, string> {
  const jobId = jobIdOf(ctx)
  return {
    PATH: worker.PATH ?? '/usr/local/bin:/usr/bin:/bin',
    LANG: worker.LANG ?? 'C.UTF-8',
    HOME: folder.scratch,
    TMPDIR: folder.scratch,
    ...run.env,
    ...secrets,
    PAWL_IN: folder.in,
    PAWL_OUT: folder.out,
    PAWL_SCRATCH: folder.scratch,
    PAWL_TASK_ID: ctx.id,
    PAWL_ATTEMPT: String(ctx.attempt),
    ...(jobId !== undefined && { PAWL_JOB_ID: jobId }),
  }
}

/** Where the engine tells it. */
function jobIdOf(ctx: TaskContext & { readonly jobId?: unknown }): string | undefined {
  return typeof ctx.jobId === 'string' ? ctx.jobId : undefined
}
