import type { RunPlan } from '../kernel/datum.ts'
import type { TaskContext } from '../worker/context.ts'
import type { AttemptFolder } from './attempt-folder.ts'

/** All that a command sees of its surroundings. Nothing of the worker's own environment but PATH and LANG. */
export function environmentOf(
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
