import type { Words } from '../words.ts'

export const words: Words = {
  task: null,
  stage: {
    created: null,
    waiting: null,
    pending: null,
    running: 'running',
    stopping: 'running',
    succeeded: 'completed',
    partial: 'partial',
    failed: 'failed',
    skipped: 'skipped',
    cancelled: 'skipped',
  },
  job: {
    created: 'pending',
    pending: 'pending',
    running: 'running',
    compensating: 'running',
    paused: 'running',
    stopping: 'running',
    succeeded: 'completed',
    partial: 'partial',
    failed: 'failed',
    cancelled: 'cancelled',
    expired: 'failed',
  },
  artifact: null,
}
