import { type Permission, permissions, type Role, roles } from '../../kernel/role.ts'
import { type Field, type Fields, field, nested, oneOf, type Static } from '../../schema/check.ts'
import { name, names } from '../../schema/fields.ts'
import { at, id, list, orNull, shape, text, words } from '../shapes.ts'

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
