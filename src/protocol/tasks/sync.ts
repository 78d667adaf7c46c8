/** The whole worker protocol in one round trip: every part a batch. The engine and the HTTP client both speak it. */
import type { ReportedOutcome, TaskError } from '../../kernel/decide.ts'
import { type ProblemCode, problems } from '../../kernel/problem.ts'
import { type Static, typed } from '../../schema/check.ts'
import type { ArtifactReport, StageFile, StageFilesQuery } from '../files/artifacts.ts'
import { anything, at, figure, flag, id, list, orNull, ref, shape, text, whole, words } from '../shapes.ts'
import type { LogLine } from './logs.ts'
import type { Page } from './tasks.ts'

const heldTask = {
  id,
  /** The fence: what is said counts only while the task is held under this epoch. */
  epoch: whole,
}
const heldTaskShape = shape(heldTask)
export type HeldTask = Static<typeof heldTaskShape>

/** The name of one lease: what is said of a task under another epoch is said of another lease. */
export const leaseOf = ({ id, epoch }: HeldTask) => `${id} ${epoch}`

export interface StartedTask extends HeldTask {
  /** How long ago it began, by the worker's own clock. */
  readonly agoMs?: number
}

export interface BeatOfTask extends HeldTask {
  readonly progress?: unknown
  readonly checkpoint?: unknown
  /** What the handler has said since the last beat. */
  readonly logs?: readonly LogLine[]
}

export interface SpawnedTask {
  /** A later stage of the job that is open. Default: the task's own. */
  readonly stage?: string
  /** Default: the type of that stage. */
  readonly type?: string
  readonly payload?: unknown
}

export interface SettledTask extends HeldTask {
  readonly outcome: ReportedOutcome
  readonly output?: unknown
  readonly error?: TaskError
  /** It succeeded, but did only some of its work. */
  readonly partial?: boolean
  readonly reason?: string
  /** More tasks of the same job, written with this report or not at all. */
  readonly spawn?: readonly SpawnedTask[]
  /** How long the handler ran; tells when a task began whose start was never reported. */
  readonly ranMs?: number
  /** What the handler has said and no beat has carried. */
  readonly logs?: readonly LogLine[]
}

export interface SyncRequest {
  /** The worker's name, for people. */
  readonly worker: string
  /** New for every process; without one, a lost answer costs a lease. */
  readonly session?: string
  /** Names one claiming sync of the session: sent again, it gets the same claims. */
  readonly syncId?: string
  readonly queues?: readonly string[]
  /** How many tasks the worker does at once, for people; said with the first claim of a session. */
  readonly slots?: number
  readonly claim?: number
  /** Wait so long for work if there is none. */
  readonly waitSeconds?: number
  readonly started?: readonly StartedTask[]
  readonly beats?: readonly BeatOfTask[]
  /** Files that tasks put out; taken before what is settled. */
  readonly artifacts?: readonly ArtifactReport[]
  readonly settled?: readonly SettledTask[]
}

export const claimedTask = shape({
  ...heldTask,
  type: text,
  payload: anything,
  /** Charged attempts of this round so far, and this one. */
  attempt: whole,
  checkpoint: anything,
  /** Have the start acknowledged before running it, and hold nothing else meanwhile. */
  careful: flag,
  leaseUntil: at,
  /** The lease ends so long after the sync was sent, unless a beat renews it. */
  leaseSeconds: figure,
  heartbeatSeconds: orNull(figure),
  timeoutSeconds: orNull(figure),
  correlationId: orNull(text),
  traceparent: orNull(text),
})
export type ClaimedTask = Static<typeof claimedTask>

const refusal = shape({
  ...heldTask,
  /** As it was reported, so it may be no id. */
  id: text,
  code: words(...(Object.keys(problems) as ProblemCode[])),
  message: text,
})
export type Refusal = Static<typeof refusal>

const cancelNotice = shape({
  ...heldTask,
  mode: words('soft'),
  graceSeconds: figure,
})
export type CancelNotice = Static<typeof cancelNotice>

export const syncAnswer = shape({
  /** How long the engine waited before it claimed: the leases began no earlier than so long after the sync was sent. */
  waitedMs: figure,
  claimed: list(ref<ClaimedTask>('ClaimedTask')),
  refused: list(refusal),
  cancel: list(cancelNotice),
})
export type SyncAnswer = Static<typeof syncAnswer>

/** What a settle of one task may carry, by its outcome. */
export const settleParts = {
  succeeded: ['output', 'partial', 'spawn', 'ranMs'],
  failed: ['error', 'ranMs'],
  skipped: ['reason', 'ranMs'],
  released: ['reason'],
  cancelled: ['reason', 'ranMs'],
} as const satisfies Record<string, readonly (keyof SettledTask)[]>

export type OneOutcome = keyof typeof settleParts
export type SaidOf<Outcome extends OneOutcome> = Pick<SettledTask, (typeof settleParts)[Outcome][number]>

/** A claim alone, for a worker that does one task at a time. */
export interface ClaimsRequest
  extends Pick<SyncRequest, 'worker' | 'queues' | 'slots' | 'claim' | 'waitSeconds' | 'session' | 'syncId'> {
  /** They begin at once: each is started before it is answered with. */
  readonly start?: boolean
  /** How long these leases last, now and whenever they are renewed. Default: what the task says, else its type. */
  readonly leaseSeconds?: number
  /** Two missed ones end these leases; null: only the lease counts. Default: the same. */
  readonly heartbeatSeconds?: number | null
  /** The heartbeat interval of tasks for which neither the task nor its type sets one. */
  readonly defaultHeartbeatSeconds?: number
  /**
   * What the session's last claim won and still holds is answered with, and nothing more is claimed; only when that is
   * nothing, it is a claim. So it may be asked again when an answer was lost, also twice at once. Needs a `session`.
   */
  readonly unlessHolding?: boolean
}

export const heartbeatAnswer = shape({
  /** Asked to stop, and how long it may take; null: go on. */
  cancel: orNull(
    typed<{ readonly mode: 'soft'; readonly graceSeconds: number }>({
      type: 'object',
      properties: { mode: words('soft'), graceSeconds: figure },
    }),
  ),
  leaseUntil: at,
})
/** What a heartbeat of one task is answered with. */
export type HeartbeatAnswer = Static<typeof heartbeatAnswer>

/** All that a worker needs of an engine, wherever that one is. */
export interface SyncPort {
  sync(request: SyncRequest, signal?: AbortSignal): Promise<SyncAnswer>
  /** Tells the engine how tasks of a type are leased, retried and kept. */
  putTaskType(type: string, settings: object): Promise<void>
  /** The files of a stage, for tasks that are given all of them. */
  stageFiles?(id: string, query: StageFilesQuery): Promise<Page<StageFile>>
  /**
   * Ends an attempt in a caller's transaction; throws what `sync` would refuse. Only where the engine is in this
   * process: a transaction cannot be sent over a wire.
   */
  completeIn?(tx: object, settled: SettledTask, worker: string): Promise<void>
}
