/** The whole worker protocol in one round trip: every part a batch. The engine and the HTTP client both speak it. */
import { outcomes, reasonCodes, steps, type TaskError } from '../../kernel/decide.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import { type ProblemCode, problems } from '../../kernel/problem.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import type { CallerTransaction } from '../../kernel/transactions.ts'
import {
  type Field,
  type Fields,
  field,
  isObject,
  listOf,
  nested,
  number,
  type OptionsOf,
  oneOf,
  type Static,
  typed,
} from '../../schema/check.ts'
import { chosenId, name, names, reason, settingFields, year } from '../../schema/fields.ts'
import {
  type ArtifactReport,
  mostReports,
  reportedArtifactFields,
  type StageFile,
  type StageFilesQuery,
} from '../files/artifacts.ts'
import type { StageJob } from '../jobs/jobs.ts'
import { anything, at, figure, flag, id, list, orNull, ref, shape, text, whole, words } from '../shapes.ts'
import { logLines } from './logs.ts'
import { maxTasksPerCall } from './new-task.ts'
import type { Page } from './tasks.ts'

/** The id may be invalid: the engine then refuses this item only. */
const heldTask = {
  id: field<string>({ type: 'string', format: 'uuid' }, () => undefined),
  /** The fence: a report counts only while the task is leased under this epoch. */
  epoch: field<number>({ type: 'integer', minimum: 0 }, () => undefined),
} satisfies Fields
const heldTaskShape = shape(heldTask)
/** Identifies a task and its lease. */
export interface HeldTask extends Static<typeof heldTaskShape> {}

/** Identifies one lease of a task. */
export const leaseOf = ({ id, epoch }: HeldTask) => `${id} ${epoch}`

const milliseconds = number({ from: 0, to: year * 1000 })

export const startedFields = {
  ...heldTask,
  /** Time since the start, by the worker's own clock. */
  agoMs: milliseconds,
} satisfies Fields
const startedTask = nested(startedFields, ['id', 'epoch'])
/** Reports that a task has started. */
export interface StartedTask extends Static<typeof startedTask> {}

export const heartbeatFields = { progress: anything, checkpoint: anything } satisfies Fields

export const beatFields = {
  ...heldTask,
  ...heartbeatFields,
  /** Lines that the handler has logged since the last heartbeat. */
  logs: logLines,
} satisfies Fields
const beatOfTask = nested(beatFields, ['id', 'epoch'])
/** Renews the lease of a task and reports its progress. */
export interface BeatOfTask extends Static<typeof beatOfTask> {}

const spawnedFields = {
  /** A later stage of the job that is open. Default: the task's own stage. */
  stage: name,
  /** Default: the type of that stage. */
  type: name,
  payload: anything,
} satisfies Fields
const spawnedTask = nested(spawnedFields)
/** A task that another task adds to its job. */
export interface SpawnedTask extends OptionsOf<typeof spawnedFields> {}

/** Missing fields and those of other types are replaced by the engine, so that a report of an error is never refused. */
const error = nested({
  message: anything,
  name,
  stack: anything,
  /** The error that led to this one: `{message, name?, stack?, cause?, errors?}`. */
  cause: anything,
  /** Several errors that led to this one, of the same shape. */
  errors: anything,
  output: anything,
  permanent: flag,
  retryInSeconds: number({ from: 0, to: year }),
  reasonCode: oneOf(reasonCodes),
  step: oneOf(steps),
}) as Field as Field<TaskError>

export const settledFields = {
  ...heldTask,
  outcome: oneOf(outcomes),
  output: anything,
  error,
  /** The task succeeded but did only a part of its work. */
  partial: flag,
  reason,
  /** More tasks of the same job. They are created together with this report or not at all. */
  spawn: listOf<SpawnedTask>(spawnedTask, maxTasksPerCall),
  /** How long the handler ran. Gives the start of a task whose start was never reported. */
  ranMs: milliseconds,
  /** Lines that the handler has logged since the last heartbeat. */
  logs: logLines,
} satisfies Fields
const settledTask = nested(settledFields, ['id', 'epoch', 'outcome'])
/** Reports the outcome of a task. */
export interface SettledTask extends Static<typeof settledTask> {}

export const artifactFields = { ...heldTask, ...reportedArtifactFields }
const artifactReport = nested(artifactFields, ['id', 'epoch', 'name', 'uri', 'state'])

/** The engine checks items one by one: an invalid one is refused, and the others are processed. */
const batchOf = <Item extends HeldTask>(items: Field): Field<readonly Item[]> =>
  field({ type: 'array', items, maxItems: mostReports }, value =>
    Array.isArray(value) && value.length <= mostReports && value.every(isObject)
      ? undefined
      : `be a list of at most ${mostReports} objects`,
  )

/** Maximum number of tasks in one claim. */
export const maxClaim = 1000

const claimingFields = {
  /** The worker's name, for people. */
  worker: name,
  /** A new id for every process. Without one, a lost answer costs a lease. */
  session: chosenId,
  /** Identifies one claiming sync of the session. If it is sent again, it gets the same claims. */
  syncId: name,
  queues: names(1000),
  /** Number of tasks that the worker runs at once, for people. Sent with the first claim of a session. */
  slots: number({ from: 1, to: 1_000_000, whole: true }),
  /** Maximum number of tasks to claim. */
  claim: number({ from: 0, to: maxClaim, whole: true }),
  /** How long to wait for work if there is none. */
  waitSeconds: number({ from: 0, to: 60 }),
} satisfies Fields

export const syncFields = {
  ...claimingFields,
  started: batchOf<StartedTask>(startedTask),
  beats: batchOf<BeatOfTask>(beatOfTask),
  /** Output files of tasks. They are processed before `settled`. */
  artifacts: batchOf<ArtifactReport>(artifactReport),
  settled: batchOf<SettledTask>(settledTask),
} satisfies Fields
const syncRequest = nested(syncFields, ['worker'])
/** A claim and reports of a worker, in one request. */
export interface SyncRequest extends Static<typeof syncRequest> {}

export const claimedTask = shape({
  ...heldTask,
  type: text,
  payload: anything,
  /** Number of this attempt in the round, counting only charged attempts. */
  attempt: whole,
  checkpoint: anything,
  /** Wait until the start is acknowledged before running it, and run nothing else meanwhile. */
  careful: flag,
  leaseUntil: at,
  /** The lease expires this long after the claim began (sent, plus `waitedMs`), unless a heartbeat renews it. */
  leaseSeconds: figure,
  heartbeatSeconds: orNull(figure),
  timeoutSeconds: orNull(figure),
  correlationId: orNull(text),
  traceparent: orNull(text),
  /** Its job and stage; null: it belongs to none. */
  jobId: orNull(id),
  stageId: orNull(id),
})
/** A task with a lease, as its worker gets it. */
export interface ClaimedTask extends Static<typeof claimedTask> {}

const refusal = shape({
  ...heldTask,
  /** As it was reported, so it may not be a valid id. */
  id: text,
  code: words(...(Object.keys(problems) as ProblemCode[])),
  message: text,
})
/** A report that was refused, and why. */
export interface Refusal extends Static<typeof refusal> {}

const cancelNotice = shape({
  ...heldTask,
  mode: words('soft'),
  graceSeconds: figure,
})
/** Tells a worker to stop a task. */
export interface CancelNotice extends Static<typeof cancelNotice> {}

const failedAttempt = shape({
  ...heldTask,
  /** The state of the task after the failure. */
  state: words(...statesOf(taskLifecycle)),
  /** Number of the last attempt, if all that follow fail too. */
  attempts: whole,
  /** When the next attempt may start; null: there is none. */
  retryInSeconds: orNull(figure),
})
/** Tells a worker how a task goes on after a failed attempt. */
export interface FailedAttempt extends Static<typeof failedAttempt> {}

export const syncAnswer = shape(
  {
    /** How long the engine waited before it claimed. The leases began at least this long after the sync was sent. */
    waitedMs: figure,
    claimed: list(ref<ClaimedTask>('ClaimedTask')),
    refused: list(refusal),
    cancel: list(cancelNotice),
  },
  {
    /** How tasks go on whose attempts this sync reported as failed. Not repeated if the report is repeated. */
    failed: list(failedAttempt),
  },
)
/** The answer to a sync: claimed tasks, refused reports and cancellations. */
export interface SyncAnswer extends Static<typeof syncAnswer> {}

/** The fields of a report on one task, by its outcome. */
export const settleParts = {
  succeeded: ['output', 'partial', 'spawn', 'ranMs'],
  failed: ['error', 'ranMs'],
  skipped: ['reason', 'ranMs'],
  released: ['reason'],
  cancelled: ['reason', 'ranMs'],
} as const satisfies Record<string, readonly (keyof SettledTask)[]>

/** Outcomes that a worker can report for a single task. */
export type OneOutcome = keyof typeof settleParts
/** The fields of a report with this outcome. */
export type ReportOf<Outcome extends OneOutcome> = Pick<SettledTask, (typeof settleParts)[Outcome][number]>

const { leaseSeconds, heartbeatSeconds } = settingFields
export const claimFields = {
  ...claimingFields,
  /** True: the tasks are started at once, before the answer. */
  start: flag,
  /**
   * Returns the tasks of the session's last claim that are still leased, and claims only if there are none. So the
   * request can be repeated when an answer was lost, even concurrently. Needs a `session`.
   */
  unlessHolding: flag,
  /** Duration of these leases and of their renewals. Default: the setting of the task, else of its type. */
  leaseSeconds,
  /** Two missed heartbeats end these leases; null: only the lease counts. Default: as for `leaseSeconds`. */
  heartbeatSeconds,
  /** The heartbeat interval of tasks for which neither the task nor its type sets one. */
  defaultHeartbeatSeconds: number({ from: 1, to: 86_400 }),
} satisfies Fields
const claimsRequest = nested(claimFields, ['worker'])
/** A claim without reports, for a worker that runs one task at a time. */
export interface ClaimsRequest extends Static<typeof claimsRequest> {}

/** The fields of a report on one task with this outcome. */
export function settleOneFields(outcome: OneOutcome): Fields {
  return Object.fromEntries(settleParts[outcome].map(part => [part, settledFields[part]]))
}

export const heartbeatAnswer = shape({
  /** The task should stop within this time; null: it should continue. */
  cancel: orNull(
    typed<{ readonly mode: 'soft'; readonly graceSeconds: number }>({
      type: 'object',
      properties: { mode: words('soft'), graceSeconds: figure },
    }),
  ),
  leaseUntil: at,
})
/** The answer to a heartbeat of one task. */
export interface HeartbeatAnswer extends Static<typeof heartbeatAnswer> {}

/** The part of the API that a worker uses, in process or over HTTP. */
export interface SyncPort {
  sync(request: SyncRequest, signal?: AbortSignal): Promise<SyncAnswer>
  /** Sets how tasks of a type are leased, retried and kept. */
  putTaskType(type: string, settings: object): Promise<void>
  /** Lists the files of a stage, for tasks whose input is a whole stage. */
  stageFiles?(id: string, query: StageFilesQuery): Promise<Page<StageFile>>
  /** Reads the job of a stage, for handlers that need its input. */
  stageJob?(id: string): Promise<StageJob>
  /**
   * Ends an attempt in a caller's transaction. Throws what `sync` would refuse. Only in process: a transaction cannot be
   * sent over the network.
   */
  completeIn?(tx: CallerTransaction, settled: SettledTask, worker: string): Promise<void>
}
