/**
 * Whether the database URL leads to a pooler that assigns connections per transaction. `none` also fits a pooler that
 * assigns whole sessions.
 */
export const poolerModes = ['detect', 'transaction', 'none'] as const
export type PoolerMode = (typeof poolerModes)[number]
