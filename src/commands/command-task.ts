/**
 * Tasks of type `command` run a program over files. Each attempt has a temporary folder. The files that the program
 * leaves in its output folder are uploaded under a prefix of this attempt, and become the task's outputs if the attempt
 * wins.
 */
import { resolve } from 'node:path'
import type { FileStore } from '../files/file-store.ts'
import { type CommandPayload, commandType, type RunPlan } from '../kernel/datum.ts'
import type { ArtifactPort, UploadedFile } from '../protocol/files/artifacts.ts'
import { callback, checkOptions, type Fields, field, number, text } from '../schema/check.ts'
import { defineTask, type Task, type TaskContext } from '../worker/define-task.ts'
import { GiveUp } from '../worker/errors.ts'
import { type AttemptFolder, defaultFolder, makeAttemptFolder, openFolder, removeFolder } from './attempt-folder.ts'
import { fetchInputs } from './inputs.ts'
import { takeMount } from './mount.ts'
import { scanOutputs, upload } from './outputs.ts'
import { readPayload } from './payload.ts'
import { runCommand } from './run-command.ts'
import { maskFor, readSecrets } from './secrets.ts'

export interface CommandTaskOptions {
  /** The storage of inputs and outputs. */
  readonly files: FileStore
  /** Holds the folders of attempts. Default: one per user in the system's temp directory. */
  readonly folder?: string
  /** Holds secrets, as `<secret>/<key>`. Default: only the worker's environment. */
  readonly secretsFolder?: string
  /** How an attempt reports its files. Default: through its context, if the engine supports it. */
  readonly artifactsOf?: (ctx: TaskContext) => ArtifactPort | undefined
  /** Inputs downloaded, and outputs uploaded, at once per task. Default 8. */
  readonly transfers?: number
}

const fields: Fields = {
  files: field({}, value => (typeof value === 'object' && value !== null ? undefined : 'be the result of openFiles()')),
  folder: text(2000),
  secretsFolder: text(2000),
  artifactsOf: callback,
  transfers: number({ from: 1, to: 1000, whole: true }),
}

export interface CommandOutput {
  /** The first files. If there are more, `count` is larger. */
  readonly files: readonly UploadedFile[]
  readonly count: number
  readonly exitCode: 0
  /** Run time of the command. */
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
  let opened: Promise<string> | undefined
  const open = () => {
    opened ??= openFolder(settings.folder).catch(error => {
      opened = undefined
      throw error
    })
    return opened
  }
  return defineTask({
    type: commandType,
    async handler(rawPayload: unknown, ctx: TaskContext): Promise<CommandOutput> {
      ctx.step('input')
      const payload = readPayload(rawPayload)
      const folder = await makeAttemptFolder(await open())
      try {
        return await attempt(payload, folder, settings, ctx)
      } finally {
        await removeFolder(folder.path).catch(error => ctx.log.warn('The folder could not be removed.', { error }))
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
    throw new GiveUp('The engine of this worker does not track files, so the outputs cannot be stored.')
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

/** The environment of a command. From the worker's own environment, it contains only PATH and LANG. */
function environmentOf(
  folder: AttemptFolder,
  ctx: TaskContext,
  run: RunPlan,
  secrets: Readonly<Record<string, string>>,
  worker: NodeJS.ProcessEnv,
): Record<string, string> {
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
    ...(ctx.jobId !== null && { PAWL_JOB_ID: ctx.jobId }),
    ...(ctx.stageId !== null && { PAWL_STAGE_ID: ctx.stageId }),
  }
}
