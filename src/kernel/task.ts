import { defineLifecycle, type MoveOf, type StateOf } from './lifecycle.ts'

export const taskLifecycle = defineLifecycle({
  entity: 'task',
  initial: ['queued', 'blocked'],

  states: {
    blocked: { kind: 'open', rank: 0, means: 'Its stage has not opened.' },
    queued: { kind: 'open', rank: 1, means: 'Can be claimed at runAt or later.' },
    assigned: { kind: 'held', rank: 2, means: 'A worker holds the lease and has not started.' },
    running: { kind: 'held', rank: 3, means: 'The worker started it.' },
    retrying: {
      kind: 'open',
      rank: 4,
      means: 'An attempt ended without a result; can be claimed again at runAt or later.',
    },
    succeeded: { kind: 'final', rank: 5, outcome: 'good', executed: true, means: 'A worker completed it.' },
    skipped: { kind: 'final', rank: 5, outcome: 'good', means: 'Intentionally not executed.' },
    failed: {
      kind: 'final',
      rank: 5,
      outcome: 'bad',
      executed: true,
      means: 'No attempts left, or the error was permanent.',
    },
    cancelled: { kind: 'final', rank: 5, outcome: 'bad', means: 'Cancelled by a user or by policy.' },
    expired: {
      kind: 'final',
      rank: 5,
      outcome: 'bad',
      executed: true,
      means: 'It did not end within its time to live.',
    },
    dead_lettered: {
      kind: 'final',
      rank: 5,
      outcome: 'bad',
      executed: true,
      means: 'In the dead-letter queue, with a reason code.',
    },
  },

  moves: {
    open: { from: ['blocked'], to: 'queued', by: ['engine'], when: 'its stage opens' },
    claim: {
      from: ['queued', 'retrying'],
      to: 'assigned',
      by: ['worker'],
      raisesEpoch: true,
      when: 'a worker asks for work',
    },
    start: { from: ['assigned'], to: 'running', by: ['worker'], when: 'the worker starts it' },
    succeed: { from: ['running'], to: 'succeeded', by: ['worker'], when: 'the handler returns' },
    skip: { from: ['running'], to: 'skipped', by: ['worker'], when: 'the handler says there is nothing to do' },
    passOver: {
      from: ['blocked', 'queued', 'retrying'],
      to: 'skipped',
      by: ['engine', 'operator'],
      when: 'its branch is not taken',
    },
    requeue: {
      from: ['assigned', 'running'],
      to: 'retrying',
      by: ['worker', 'babysitter'],
      when: 'the attempt failed, timed out, was lost or released, and attempts are left',
    },
    fail: {
      from: ['assigned', 'running'],
      to: 'failed',
      by: ['worker', 'babysitter'],
      when: 'no attempts are left, or the error is permanent',
    },
    cancel: {
      from: ['blocked', 'queued', 'retrying', 'assigned', 'running'],
      to: 'cancelled',
      by: ['operator', 'engine', 'worker', 'babysitter'],
      when: 'it is cancelled',
    },
    expire: {
      from: ['blocked', 'queued', 'retrying', 'assigned', 'running'],
      to: 'expired',
      by: ['babysitter'],
      when: 'its time to live has passed',
    },
    deadLetter: {
      from: ['queued', 'retrying', 'assigned', 'running'],
      to: 'dead_lettered',
      by: ['operator', 'engine', 'worker', 'babysitter'],
      when: 'its budget is used up, or its handler or an operator dead-letters it',
    },
    resume: {
      from: ['cancelled'],
      to: ['queued', 'blocked'],
      by: ['operator'],
      opensRound: true,
      when: 'an operator resumes it',
    },
    retry: {
      from: ['failed', 'expired'],
      to: ['queued', 'blocked'],
      by: ['operator'],
      opensRound: true,
      when: 'an operator retries it',
    },
    redrive: {
      from: ['dead_lettered'],
      to: ['queued', 'blocked'],
      by: ['operator'],
      opensRound: true,
      when: 'an operator redrives it',
    },
    reopen: {
      from: ['skipped'],
      to: 'blocked',
      by: ['engine'],
      opensRound: true,
      when: 'a stage above its own is revived',
    },
  },

  compound: [
    // A worker reports the end of a short task without its start.
    { from: ['assigned'], via: 'running' },
    // A claim also starts the task.
    { from: ['queued', 'retrying'], via: 'assigned', to: ['running'] },
  ],
})

export type TaskState = StateOf<typeof taskLifecycle>
export type TaskMove = MoveOf<typeof taskLifecycle>
