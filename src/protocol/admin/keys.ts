import { type Permission, permissions, type Role, roles } from '../../kernel/role.ts'
import type { Static } from '../../schema/check.ts'
import { at, id, list, orNull, shape, text, words } from '../shapes.ts'

export interface NewKey {
  /** For people: it is the actor in events. */
  readonly name: string
  /** Either `role` or `roles` is required. */
  readonly role?: Role
  /** A key with several roles may do whatever one of them allows. */
  readonly roles?: readonly Role[]
  /** Only for producers and workers. Default: every queue. */
  readonly queues?: readonly string[]
}

const role = words(...(Object.keys(roles) as Role[]))

const keyFields = {
  id,
  name: text,
  /** The first of its roles, for clients that know only one. */
  role,
  roles: list(role),
  /** null: every queue. */
  queues: orNull(list(text)),
  createdAt: at,
  /** null, as the other: from before it was kept. */
  createdBy: orNull(text),
  revokedAt: orNull(at),
  revokedBy: orNull(text),
}
export const keyView = shape(keyFields)
export type KeyView = Static<typeof keyView>

export const madeKey = shape({
  ...keyFields,
  /** Said this once: only its hash is kept. */
  secret: text,
})
export type MadeKey = Static<typeof madeKey>

export const me = shape({
  /** Of its key; null: it has none, and none is wanted. */
  name: orNull(text),
  /** The first of its roles. */
  role,
  roles: list(role),
  permissions: list(words(...(Object.keys(permissions) as Permission[]))),
  /** Those that its key is for; null: all. */
  queues: orNull(list(text)),
})
/** Who asks. */
export type Me = Static<typeof me>
