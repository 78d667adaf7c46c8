import { type Static, typed } from '../../schema/check.ts'
import { at, figure, flag, id, list, orNull, shape, text, whole, words } from '../shapes.ts'

export const finding = shape({
  /** `bad`: a promise is broken or about to be. `warning`: it works, but will hurt. `note`: good to know. */
  grade: words('bad', 'warning', 'note'),
  what: text,
  todo: text,
})
export type Finding = Static<typeof finding>

export const examination = shape({
  store: text,
  findings: list(finding),
  healthy: flag,
})
export type Examination = Static<typeof examination>

export const queueView = shape({
  queue: text,
  /** May be claimed now. */
  due: whole,
  /** Wait for their time. */
  scheduled: whole,
  /** Wait for their job or stage to go on. */
  paused: whole,
  held: whole,
  /** How long the oldest that is due has been waiting. */
  oldestSeconds: orNull(figure),
})
export type QueueView = Static<typeof queueView>

export const lostWorkerView = shape({
  worker: text,
  /** The tasks whose leases have ended. */
  tasks: list(id),
})
/** The tasks that were taken from a worker that was declared lost. */
export type LostWorkerView = Static<typeof lostWorkerView>

export const workerView = shape({
  /** Null, like its times: one that claims without a session, and is known by what it holds. */
  session: orNull(id),
  worker: text,
  queues: list(text),
  startedAt: orNull(at),
  seenAt: orNull(at),
  /** How many tasks it does at once; null: it does not say. */
  slots: orNull(whole),
  /** Tasks that are held under its name; some of them may be claimed ahead of need. */
  leases: whole,
  leasesByQueue: typed<Readonly<Record<string, number>>>({ type: 'object', additionalProperties: whole }),
})
export type WorkerView = Static<typeof workerView>
