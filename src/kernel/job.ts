import { defineLifecycle, type MoveOf, type StateOf } from './lifecycle.ts'

export const jobLifecycle = defineLifecycle({
  entity: 'job',
  initial: ['created'],

  states: {
    created: { kind: 'open', rank: 0, means: 'Written down, not started.' },
    pending: { kind: 'open', rank: 1, means: 'Started; none of its tasks has begun in this round.' },
    running: { kind: 'open', rank: 2, executed: true, means: 'A task of it has begun.' },
    paused: { kind: 'open', rank: 3, hold: true, means: 'Nothing of it is claimed; work in hand may finish.' },
    stopping: { kind: 'open', rank: 4, executed: true, means: 'How it ends is decided; work in hand is awaited.' },
    compensating: { kind: 'open', rank: 5, executed: true, means: 'What had succeeded is being undone.' },
    succeeded: { kind: 'final', rank: 6, outcome: 'good', executed: true, means: 'All its stages ended well.' },
    partial: { kind: 'final', rank: 6, outcome: 'mixed', executed: true, means: 'Some of it is done.' },
    failed: { kind: 'final', rank: 6, outcome: 'bad', executed: true, means: 'A stage that matters failed.' },
    cancelled: { kind: 'final', rank: 6, outcome: 'bad', means: 'Called off.' },
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
      when: 'its end is decided while work is in hand',
    },
    compensate: { from: ['stopping'], to: 'compensating', by: ['engine'], when: 'there is something to undo' },
    fail: {
      from: ['created', 'pending', 'running', 'paused', 'stopping', 'compensating'],
      to: 'failed',
      by: ['engine', 'babysitter'],
      when: 'a stage that matters failed, or it is stale',
    },
    cancel: {
      from: ['created', 'pending', 'running', 'paused', 'stopping', 'compensating'],
      to: 'cancelled',
      by: ['operator', 'engine', 'babysitter'],
      when: 'it is called off and nothing is in hand',
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
      when: 'a stage is added to one that was open until it was done',
    },
    revive: {
      from: ['failed', 'cancelled', 'expired', 'partial'],
      to: 'pending',
      by: ['operator'],
      opensRound: true,
      when: 'an operator retries or resumes it, or one of its tasks',
    },
  },
})

export type JobState = StateOf<typeof jobLifecycle>
export type JobMove = MoveOf<typeof jobLifecycle>
