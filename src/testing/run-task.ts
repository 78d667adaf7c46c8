import type { ReportedOutcome, TaskError } from '../kernel/decide.ts'
import { newId } from '../kernel/id.ts'
import { unkeepable, writeJson } from '../kernel/json.ts'
import { Problem } from '../kernel/problem.ts'
import type { LogLine } from '../protocol/tasks/logs.ts'
import type { SettledTask, SpawnedTask } from '../protocol/tasks/sync.ts'
import { checkPayload } from '../protocol/tasks/task-type.ts'
import { abortSignal, anything, checkOptions, type Fields, number, text } from '../schema/check.ts'
import type { Task } from '../worker/define-task.ts'
import { attempt, inHand, interrupt } from '../worker/held-task.ts'

export interface RunTaskOptions {
  readonly id?: string
  /** Which try it is. Default 1. */
  readonly attempt?: number
  /** What an earlier attempt has kept. */
  readonly lastCheckpoint?: unknown
  readonly correlationId?: string
  readonly traceparent?: string
  /** Aborting it is a cancel: the handler's own signal aborts, and what it then throws is reported as cancelled. */
  readonly signal?: AbortSignal
}

const fields: Fields = {
  id: text(200),
  attempt: number({ from: 1, to: 1_000_000, whole: true }),
  lastCheckpoint: anything,
  correlationId: text(200),
  traceparent: text(200),
  signal: abortSignal,
}

/** What a worker would report, and what the handler said on the way. */
export interface TaskRun {
  readonly outcome: ReportedOutcome
  readonly output: unknown
  readonly error: TaskError | null
  readonly reason: string | null
  readonly partial: boolean
  /** The last one that it told; null: none. */
  readonly progress: unknown
  /** The last one that it kept, in this attempt or, if it kept none, in an earlier one. */
  readonly checkpoint: unknown
  readonly spawned: readonly SpawnedTask[]
  /** What it logged, in order. */
  readonly logs: readonly Pick<LogLine, 'level' | 'message' | 'facts'>[]
  /** It ended the task in a transaction of its own, with `ctx.complete`. */
  readonly completed: boolean
}

/**
 * Runs one handler alone: no store, no worker. The payload is checked, travels as JSON and is handed over as it would be
 * by a worker, and what the handler throws is made into the report that a worker would send.
 */
export async function runTask<In>(task: Task<In>, payload: In, options: RunTaskOptions = {}): Promise<TaskRun> {
  checkOptions(options, fields, 'runTask')
  const kept = asStored(payload, 'payload')
  const held = inHand(
    {
      id: options.id ?? newId(),
      epoch: 1,
      type: task.type,
      payload: kept,
      attempt: options.attempt ?? 1,
      checkpoint: options.lastCheckpoint ?? null,
      careful: false,
      leaseUntil: new Date(8.64e15).toISOString(),
      leaseSeconds: Number.POSITIVE_INFINITY,
      heartbeatSeconds: null,
      timeoutSeconds: task.options.timeoutSeconds ?? null,
      correlationId: options.correlationId ?? null,
      traceparent: options.traceparent ?? null,
    },
    performance.now(),
  )
  const cancel = () => interrupt(held, 'cancelled')
  if (options.signal?.aborted) cancel()
  options.signal?.addEventListener('abort', cancel, { once: true })
  const settled = await attempt(held, async (value, ctx) => task.run(await checkPayload(task, value, 'payload'), ctx), {
    async saveCheckpoint(_, value) {
      held.unsent.checkpoint = asStored(value, 'checkpoint')
    },
    completeIn: async () => {},
    sayFiles: async () => {},
    async *filesOf() {},
  })
  options.signal?.removeEventListener('abort', cancel)
  return toRun(asReported(settled), held)
}

/** A value as the store would give it back. */
function asStored(value: unknown, at: string): unknown {
  const made = writeJson(value)
  const why = 'fault' in made ? made.fault : unkeepable(made.text)
  if (why !== undefined) throw new Problem('PAYLOAD_INVALID', { at, why })
  return 'text' in made ? JSON.parse(made.text) : null
}

/** An output that the engine could not keep is a failed attempt. */
function asReported(settled: SettledTask): SettledTask {
  try {
    return settled.output === undefined ? settled : { ...settled, output: asStored(settled.output, 'output') }
  } catch (error) {
    const { id, epoch } = settled
    return { id, epoch, outcome: 'failed', error: { message: (error as Error).message, step: 'output' } }
  }
}

function toRun(settled: SettledTask, held: ReturnType<typeof inHand>): TaskRun {
  const { outcome, output = null, error = null, reason = null, partial = false, spawn = [] } = settled
  return {
    outcome,
    output,
    error,
    reason,
    partial,
    progress: held.unsent.progress ?? null,
    checkpoint: held.unsent.checkpoint ?? held.task.checkpoint,
    spawned: spawn,
    logs: (held.log?.last(performance.now()) ?? []).map(({ n: _n, agoMs: _ago, ...line }) => line),
    completed: held.completed !== undefined,
  }
}
