import type { Words } from '../words.ts'

export const words = {
  task: {
    blocked: 'CREATED',
    queued: 'CREATED',
    retrying: 'RETRY',
    assigned: 'ACTIVE',
    running: 'ACTIVE',
    succeeded: 'COMPLETED',
    skipped: 'SKIPPED',
    failed: 'FAILED',
    cancelled: 'CANCELLED',
    expired: 'EXPIRED',
    dead_lettered: 'FAILED',
  },
  stage: null,
  job: {
    created: 'CREATED',
    pending: 'CREATED',
    running: 'ACTIVE',
    compensating: 'ACTIVE',
    paused: 'ACTIVE',
    stopping: 'ACTIVE',
    succeeded: 'COMPLETED',
    partial: 'FAILED',
    failed: 'FAILED',
    cancelled: 'CANCELLED',
    expired: 'EXPIRED',
  },
  artifact: null,
} as const satisfies Words
