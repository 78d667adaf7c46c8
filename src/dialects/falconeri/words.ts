import type { Words } from '../words.ts'

export const words = {
  task: {
    blocked: null,
    queued: 'ready',
    retrying: {
      label: 'error (tries left); ready once due',
      of: ({ runAt }, now) => (runAt !== undefined && Date.parse(runAt) <= now ? 'ready' : 'error'),
    },
    assigned: 'running',
    running: 'running',
    succeeded: 'done',
    skipped: 'done',
    failed: 'error',
    cancelled: 'canceled',
    expired: 'error',
    dead_lettered: 'error',
  },
  stage: null,
  job: {
    created: 'running',
    pending: 'running',
    running: 'running',
    compensating: 'running',
    paused: 'running',
    stopping: 'running',
    succeeded: 'done',
    partial: 'error',
    failed: 'error',
    cancelled: 'canceled',
    expired: 'error',
  },
  artifact: {
    registered: 'running',
    uploaded: {
      label: 'running; done if its worker has put it in its place',
      of: ({ inPlace }) => (inPlace === true ? 'done' : 'running'),
    },
    stored: 'done',
    error: 'error',
    discarded: null,
  },
} as const satisfies Words
