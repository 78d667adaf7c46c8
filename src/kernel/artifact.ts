import { defineLifecycle, type StateOf } from './lifecycle.ts'

export const artifactLifecycle = defineLifecycle({
  entity: 'artifact',
  initial: ['registered'],

  states: {
    registered: { kind: 'open', rank: 0, means: 'Registered by an attempt, not uploaded yet.' },
    uploaded: { kind: 'open', rank: 1, means: 'Uploaded under the prefix of its attempt, with its checksum.' },
    stored: { kind: 'final', rank: 2, outcome: 'good', executed: true, means: 'Stored at its final URI.' },
    error: { kind: 'final', rank: 2, outcome: 'bad', executed: true, means: 'It could not be created or stored.' },
    discarded: { kind: 'final', rank: 2, outcome: 'bad', means: 'Its attempt did not win.' },
  },

  moves: {
    upload: { from: ['registered'], to: 'uploaded', by: ['worker'], when: 'its upload is complete' },
    store: {
      from: ['uploaded'],
      to: 'stored',
      by: ['engine', 'babysitter'],
      when: 'its attempt won, and it was promoted',
    },
    fail: {
      from: ['registered', 'uploaded'],
      to: 'error',
      by: ['worker', 'engine', 'babysitter'],
      when: 'the upload or its promotion failed permanently',
    },
    discard: {
      from: ['registered', 'uploaded'],
      to: 'discarded',
      by: ['engine', 'babysitter'],
      when: 'its attempt ended without winning',
    },
  },
})

export type ArtifactState = StateOf<typeof artifactLifecycle>
