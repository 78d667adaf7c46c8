import type { Words } from '../words.ts'

export const words: Words = {
  task: {
    blocked: 'queued',
    queued: 'queued',
    retrying: 'queued',
    assigned: 'assigned',
    running: 'running',
    succeeded: 'succeeded',
    skipped: 'succeeded',
    failed: 'failed',
    cancelled: 'cancelled',
    expired: 'failed',
    dead_lettered: 'dead_lettered',
  },
  stage: null,
  job: null,
  artifact: null,
  eventType: ({ type }) => eventTypes[type] ?? null,
}

/** The document's events are those of its jobs, which are Pawl's tasks. */
export const eventTypes: Readonly<Record<string, string>> = {
  'task.queued': 'job_queued',
  'task.blocked': 'job_queued',
  'task.retrying': 'job_queued',
  'task.claimed': 'job_claimed',
  'task.started': 'job_started',
  'task.heartbeat': 'job_heartbeat',
  'task.progress': 'job_heartbeat',
  'task.lease_renewed': 'job_lease_renewed',
  'task.succeeded': 'job_succeeded',
  'task.skipped': 'job_succeeded',
  'task.failed': 'job_failed',
  'task.expired': 'job_failed',
  'task.cancelled': 'job_cancelled',
  'task.dead_lettered': 'job_dead_lettered',
  'job.compensated': 'job_compensated',
}

/** Frequent events, listed only with those of their job. */
const verbose = ['job_heartbeat', 'job_lease_renewed']

/** The event types in the list of all jobs' events. */
export const feedTypes: readonly string[] = [...new Set(Object.values(eventTypes))].filter(
  type => !verbose.includes(type),
)
