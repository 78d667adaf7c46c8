import { defineLifecycle, type StateOf } from './lifecycle.ts'

export const stageLifecycle = defineLifecycle({
  entity: 'stage',
  initial: ['created'],
  // A stage of a small job is inserted and opened by one statement.
  opening: ['pending'],

  states: {
    created: { kind: 'open', rank: 0, means: 'Its needs have not been met.' },
    pending: { kind: 'open', rank: 1, means: 'Open: its tasks can be claimed.' },
    running: { kind: 'open', rank: 2, executed: true, means: 'One of its tasks has started.' },
    waiting: { kind: 'open', rank: 3, hold: true, means: 'On hold: at a gate, or for an external condition.' },
    stopping: {
      kind: 'open',
      rank: 4,
      executed: true,
      means: 'Its end is decided; running tasks are still finishing.',
    },
    succeeded: { kind: 'final', rank: 5, outcome: 'good', executed: true, means: 'All its tasks ended well.' },
    skipped: { kind: 'final', rank: 5, outcome: 'good', means: 'Its branch was not taken.' },
    partial: { kind: 'final', rank: 5, outcome: 'mixed', executed: true, means: 'Part of its work is done.' },
    failed: { kind: 'final', rank: 5, outcome: 'bad', executed: true, means: 'More tasks failed than it tolerates.' },
    cancelled: { kind: 'final', rank: 5, outcome: 'bad', means: 'Cancelled by a user or by policy.' },
  },

  moves: {
    open: { from: ['created'], to: 'pending', by: ['engine'], when: 'its needs are met' },
    hold: {
      from: ['created', 'pending', 'running'],
      to: 'waiting',
      by: ['engine', 'operator'],
      when: 'it has a gate, or is held for an external condition',
    },
    approve: {
      from: ['waiting'],
      to: ['pending', 'running'],
      by: ['operator', 'engine'],
      when: 'it is approved; running if a task had started',
    },
    start: { from: ['pending'], to: 'running', by: ['engine'], when: 'its first task starts' },
    succeed: { from: ['pending', 'running'], to: 'succeeded', by: ['engine'], when: 'all tasks ended well' },
    settle: { from: ['pending', 'running'], to: 'partial', by: ['engine'], when: 'bad tasks stay within tolerance' },
    fail: {
      from: ['created', 'pending', 'waiting', 'running', 'stopping'],
      to: 'failed',
      by: ['engine', 'babysitter'],
      when: 'too many tasks are bad, its condition cannot be evaluated, or its gate timed out',
    },
    reject: { from: ['waiting'], to: 'failed', by: ['operator'], when: 'its gate is rejected' },
    skip: { from: ['created', 'pending'], to: 'skipped', by: ['engine'], when: 'its branch is not taken' },
    stop: {
      from: ['pending', 'waiting', 'running'],
      to: 'stopping',
      by: ['engine', 'babysitter'],
      when: 'its end is decided while tasks are running',
    },
    cancel: {
      from: ['created', 'pending', 'waiting', 'running', 'stopping'],
      to: 'cancelled',
      by: ['operator', 'engine', 'babysitter'],
      when: 'it is cancelled and no task is running',
    },
    revive: {
      from: ['failed', 'cancelled', 'partial'],
      to: 'created',
      by: ['operator', 'engine'],
      opensRound: true,
      when: 'it, its job or one of its tasks is retried or resumed',
    },
    reopen: {
      from: ['skipped'],
      to: 'created',
      by: ['engine'],
      opensRound: true,
      when: 'a stage above it is revived',
    },
  },

  // Its tasks have started and ended since its job was last advanced.
  compound: [{ from: ['pending'], via: 'running', to: ['succeeded', 'partial', 'failed'] }],
})

export type StageState = StateOf<typeof stageLifecycle>
