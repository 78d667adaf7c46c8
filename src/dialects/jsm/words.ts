/** The document's names for states and events, and its tables of transitions. */
import type { TaskState } from '../../kernel/task.ts'
import type { Words } from '../words.ts'

export const words = {
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
  eventType: ({ type }: { readonly type: string }) => eventTypes[type] ?? null,
} as const satisfies Words

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

export const states = ['queued', 'assigned', 'running', 'succeeded', 'failed', 'cancelled', 'dead_lettered'] as const

export type State = (typeof states)[number]

/** Every task state has a word here. */
export const stateOf = (state: TaskState): State => words.task[state]

/**
 * The document's two tables of transitions as one: which request is accepted in which state. No request leads back to
 * queued; a retry or a lost lease does.
 */
const acceptedIn = {
  claim: ['queued'],
  start: ['assigned'],
  /** The first heartbeat also starts the job. */
  heartbeat: ['assigned', 'running'],
  /** A job that was never started cannot have succeeded or failed. */
  succeed: ['running'],
  fail: ['running'],
  cancel: ['queued', 'assigned', 'running'],
  dead_letter: ['queued', 'assigned', 'running'],
  retry: ['dead_lettered'],
} as const satisfies Record<string, readonly State[]>

export type Move = keyof typeof acceptedIn

export function isAccepted(move: Move, state: State): boolean {
  return (acceptedIn[move] as readonly State[]).includes(state)
}

export function movesFrom(state: State): Move[] {
  return (Object.keys(acceptedIn) as Move[]).filter(move => isAccepted(move, state))
}
