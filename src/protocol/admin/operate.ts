import { type Fields, number, type OptionsOf, type Static, typed } from '../../schema/check.ts'
import { name } from '../../schema/fields.ts'
import { namedPageFields, type PageQuery } from '../call-options.ts'
import { at, figure, flag, id, list, orNull, shape, text, whole, words } from '../shapes.ts'

const finding = shape({
  /** `bad`: a guarantee is broken or about to be. `warning`: it works, but will cause trouble. `note`: information. */
  grade: words('bad', 'warning', 'note'),
  what: text,
  todo: text,
})
/** One finding of the doctor, with a remedy. */
export interface Finding extends Static<typeof finding> {}

export const examination = shape({
  store: text,
  findings: list(finding),
  healthy: flag,
})
/** The doctor's report on the store. */
export interface Examination extends Static<typeof examination> {}

export const queueView = shape({
  queue: text,
  /** Can be claimed now. */
  due: whole,
  /** Waiting for their `runAt`. */
  scheduled: whole,
  /** Waiting because their job or stage is paused. */
  paused: whole,
  held: whole,
  /** How long the oldest due task has been waiting. */
  oldestSeconds: orNull(figure),
})
/** The depth of a queue. */
export interface QueueView extends Static<typeof queueView> {}

export const lostWorkerView = shape({
  worker: text,
  /** The tasks whose leases have ended. */
  tasks: list(id),
})
/** The tasks that were taken from a worker that was declared lost. */
export interface LostWorkerView extends Static<typeof lostWorkerView> {}

export const workerView = shape({
  /** Null, like its times: the worker claims without a session and is known only by its leases. */
  session: orNull(id),
  worker: text,
  queues: list(text),
  startedAt: orNull(at),
  seenAt: orNull(at),
  /** Number of tasks that it runs at once; null: not reported. */
  slots: orNull(whole),
  /** Tasks leased under its name. It may have claimed some in advance. */
  leases: whole,
  leasesByQueue: typed<Readonly<Record<string, number>>>({ type: 'object', additionalProperties: whole }),
})
/** A worker and its leases. */
export interface WorkerView extends Static<typeof workerView> {}

const ownWorkerQueryFields = {
  /** Only workers that contacted the server within this time. Default: 60. */
  withinSeconds: number({ from: 1, to: 86_400 }),
} satisfies Fields
export const workerQueryFields = { ...namedPageFields, ...ownWorkerQueryFields }
/** Query for workers. */
export interface WorkerQuery extends PageQuery, OptionsOf<typeof ownWorkerQueryFields> {}

const ownTaskTypeQueryFields = {
  /** Only the type of this name. If it has no settings, the page is empty. */
  type: name,
} satisfies Fields
export const taskTypeQueryFields = { ...namedPageFields, ...ownTaskTypeQueryFields }
/** Query for task types. */
export interface TaskTypeQuery extends PageQuery, OptionsOf<typeof ownTaskTypeQueryFields> {}
