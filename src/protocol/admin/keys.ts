import type { Permission, Role } from '../../kernel/role.ts'

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

export interface KeyView {
  readonly id: string
  readonly name: string
  /** The first of its roles, for clients that know only one. */
  readonly role: Role
  readonly roles: readonly Role[]
  /** null: every queue. */
  readonly queues: readonly string[] | null
  readonly createdAt: string
  /** null, as the other: from before it was kept. */
  readonly createdBy: string | null
  readonly revokedAt: string | null
  readonly revokedBy: string | null
}

export interface MadeKey extends KeyView {
  /** Said this once: only its hash is kept. */
  readonly secret: string
}

/** Who asks. */
export interface Me {
  /** Of its key; null: it has none, and none is wanted. */
  readonly name: string | null
  /** The first of its roles. */
  readonly role: Role
  readonly roles: readonly Role[]
  readonly permissions: readonly Permission[]
  /** Those that its key is for; null: all. */
  readonly queues: readonly string[] | null
}
