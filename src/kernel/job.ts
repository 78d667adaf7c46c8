import { defineLifecycle, type MoveOf, type StateOf } from './lifecycle.ts'

export const jobLifecycle = defineLifecycle({
  entity: 'job',
  initial: ['created'],
  // A small job is inserted and started by one statement.
  opening: ['pending'],

  states: {
    created: { kind: 'open', rank: 0, means: 'Created, not started.' },
    pending: { kind: 'open', rank: 1, means: 'Started; none of its tasks has started in this round.' },
    running: { kind: 'open', rank: 2, executed: true, means: 'One of its tasks has started.' },
    paused: { kind: 'open', rank: 3, hold: true, means: 'Its tasks are not claimed; running tasks may finish.' },
    stopping: {
      kind: 'open',
      rank: 4,
      executed: true,
      means: 'Its end is decided; running tasks are still finishing.',
    },
    compensating: { kind: 'open', rank: 5, executed: true, means: 'Its completed work is being undone.' },
    succeeded: { kind: 'final', rank: 6, outcome: 'good', executed: true, means: 'All its stages ended well.' },
    partial: { kind: 'final', rank: 6, outcome: 'mixed', executed: true, means: 'Part of its work is done.' },
    failed: { kind: 'final', rank: 6, outcome: 'bad', executed: true, means: 'A required stage failed.' },
    cancelled: { kind: 'final', rank: 6, outcome: 'bad', means: 'Cancelled by a user or by policy.' },
    expired: { kind: 'final', rank: 6, outcome: 'bad', executed: true, means: 'Its deadline passed.' },
  },

  moves: {
    submit: { from: ['created'], to: 'pending', by: ['engine', 'operator'], when: 'it is submitted or started' },
    start: { from: ['pending'], to: 'running', by: ['engine'], when: 'its first task starts' },
    pause: { from: ['pending', 'running'], to: 'paused', by: ['operator'], when: 'an operator pauses it' },
    unpause: {
      from: ['paused'],
      to: ['pending', 'running'],
      by: ['operator'],
      when: 'an operator resumes it; running if a task had started in this round',
    },
    succeed: { from: ['pending', 'running'], to: 'succeeded', by: ['engine'], when: 'all stages ended well' },
    settle: { from: ['pending', 'running'], to: 'partial', by: ['engine'], when: 'some stages are bad, some not' },
    stop: {
      from: ['created', 'pending', 'running', 'paused'],
      to: 'stopping',
      by: ['engine', 'babysitter'],
      when: 'its end is decided while tasks are running',
    },
    compensate: { from: ['stopping'], to: 'compensating', by: ['engine'], when: 'there is something to undo' },
    fail: {
      from: ['created', 'pending', 'running', 'paused', 'stopping', 'compensating'],
      to: 'failed',
      by: ['engine', 'babysitter'],
      when: 'a required stage failed, or the job is stale',
    },
    cancel: {
      from: ['created', 'pending', 'running', 'paused', 'stopping', 'compensating'],
      to: 'cancelled',
      by: ['operator', 'engine', 'babysitter'],
      when: 'it is cancelled and no task is running',
    },
    expire: {
      from: ['created', 'pending', 'running', 'paused', 'stopping', 'compensating'],
      to: 'expired',
      by: ['engine', 'babysitter'],
      when: 'its deadline has passed',
    },
    extend: {
      from: ['succeeded', 'partial'],
      to: 'pending',
      by: ['engine'],
      opensRound: true,
      when: 'a stage is added to a job that is open until done',
    },
    revive: {
      from: ['failed', 'cancelled', 'expired', 'partial'],
      to: 'pending',
      by: ['operator'],
      opensRound: true,
      when: 'an operator retries or resumes it, or one of its tasks',
    },
  },

  // Its tasks have started and ended since the job was last advanced.
  compound: [{ from: ['pending'], via: 'running', to: ['succeeded', 'partial', 'failed'] }],
})

export type JobState = StateOf<typeof jobLifecycle>
export type JobMove = MoveOf<typeof jobLifecycle>
