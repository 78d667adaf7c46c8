/**
 * Says whether a pooler that hands out connections per transaction stands before the PostgreSQL server. `none` is also right
 * for a pooler that hands out whole sessions.
 */
export const poolerModes = ['detect', 'transaction', 'none'] as const
export type PoolerMode = (typeof poolerModes)[number]
