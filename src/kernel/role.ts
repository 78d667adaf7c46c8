/** Permissions over HTTP. A role is a set of permissions, and every route requires one. */
export const permissions = {
  read: 'see jobs, stages, tasks, events and figures',
  produce: 'submit jobs and queue tasks, and add to those that are open',
  work: 'claim tasks and report on them',
  teach: 'set how tasks of a type are leased, retried and kept',
  operate: 'pause, cancel, approve, retry, redrive and delete',
  administer: 'create and revoke keys',
} as const

export type Permission = keyof typeof permissions

export const roles = {
  viewer: ['read'],
  producer: ['read', 'produce', 'teach'],
  worker: ['work', 'teach'],
  operator: ['read', 'produce', 'work', 'teach', 'operate'],
  admin: ['read', 'produce', 'work', 'teach', 'operate', 'administer'],
} as const satisfies Record<string, readonly Permission[]>

export type Role = keyof typeof roles

/** A key may have several roles and all their permissions. */
export function permissionsOf(held: readonly Role[]): Permission[] {
  const allowed = new Set<Permission>(held.flatMap(role => roles[role]))
  return (Object.keys(permissions) as Permission[]).filter(permission => allowed.has(permission))
}

export function may(held: Role | readonly Role[], permission: Permission): boolean {
  return [held].flat().some(role => (roles[role] as readonly Permission[]).includes(permission))
}
