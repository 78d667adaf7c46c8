/** Shapes of keys, queues and workers, and of the doctor's report. */
import { type Permission, permissions, type Role, roles } from '../../kernel/role.ts'
import {
  type Field,
  type Fields,
  field,
  nested,
  number,
  type OptionsOf,
  oneOf,
  type Static,
  typed,
} from '../../schema/check.ts'
import { name, names } from '../../schema/fields.ts'
import { namedPageFields, type PageQuery } from '../call-options.ts'
import { at, figure, flag, id, list, orNull, shape, text, whole, words } from '../shapes.ts'

const roleNames = Object.keys(roles) as Role[]
const rolesField: Field<readonly Role[]> = field(
  { type: 'array', items: { type: 'string', enum: roleNames }, minItems: 1, maxItems: roleNames.length },
  value =>
    Array.isArray(value) && value.length > 0 && value.every(role => roleNames.includes(role))
      ? undefined
      : `be a list of ${roleNames.join(', ')}, with at least one of them`,
)

export const keyFields = {
  /** For people. It is the actor in events. */
  name,
  /** Either `role` or `roles` is required. */
  role: oneOf(roleNames),
  /** A key with several roles has the permissions of all of them. */
  roles: rolesField,
  /** Only for producers and workers. Default: every queue. */
  queues: names(100),
} satisfies Fields
const newKey = nested(keyFields, ['name'])
/** A key to create. */
export interface NewKey extends Static<typeof newKey> {}

const role = words(...roleNames)

const keyProperties = {
  id,
  name: text,
  /** The first of its roles, for clients that know only one. */
  role,
  roles: list(role),
  /** null: every queue. */
  queues: orNull(list(text)),
  createdAt: at,
  /** null, like `revokedBy`: not recorded by earlier versions. */
  createdBy: orNull(text),
  revokedAt: orNull(at),
  revokedBy: orNull(text),
}
export const keyView = shape(keyProperties)
/** A key, without its secret. */
export interface KeyView extends Static<typeof keyView> {}

export const madeKey = shape({
  ...keyProperties,
  /** Shown only once. Pawl stores only its hash. */
  secret: text,
})
/** A new key with its secret. */
export interface MadeKey extends Static<typeof madeKey> {}

export const me = shape({
  /** Name of the key; null: the caller has no key and needs none. */
  name: orNull(text),
  /** The first of its roles. */
  role,
  roles: list(role),
  permissions: list(words(...(Object.keys(permissions) as Permission[]))),
  /** The queues that the key is limited to; null: all. */
  queues: orNull(list(text)),
})
/** The caller of a request. */
export interface Me extends Static<typeof me> {}

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
