import { asItWillEnd, type StageFacts, type Words } from '../words.ts'

export const words: Words = {
  task: {
    blocked: 'PENDING',
    queued: 'PENDING',
    retrying: 'RETRIED',
    assigned: 'IN_PROGRESS',
    running: 'IN_PROGRESS',
    succeeded: 'COMPLETED',
    skipped: 'COMPLETED',
    failed: 'FAILED',
    cancelled: 'FAILED',
    expired: 'FAILED',
    dead_lettered: 'FAILED',
  },
  stage: {
    created: { says: 'CREATED, or WAITING if it has a gate or is held', of: beforeItsTurn },
    waiting: 'WAITING',
    pending: 'PENDING',
    running: 'IN_PROGRESS',
    stopping: { says: 'as it will end', of: stage => (stage.endsAs === 'failed' ? 'FAILED' : calledOff(stage)) },
    succeeded: 'COMPLETED',
    partial: 'COMPLETED',
    failed: 'FAILED',
    skipped: 'COMPLETED',
    cancelled: { says: 'ABORTED; because its job failed: what it was before', of: calledOff },
  },
  job: {
    created: 'PENDING',
    pending: 'PENDING',
    running: 'IN_PROGRESS',
    compensating: 'IN_PROGRESS',
    paused: 'PAUSED',
    stopping: asItWillEnd({ failed: 'FAILED', cancelled: 'ABORTED', expired: 'FAILED' }),
    succeeded: 'COMPLETED',
    partial: 'COMPLETED',
    failed: 'FAILED',
    cancelled: 'ABORTED',
    expired: 'FAILED',
  },
  artifact: null,
}

/** A stage whose needs are not met yet, but that will not open by itself when they are, waits already. */
function beforeItsTurn({ gate, held }: StageFacts): string {
  return gate || held ? 'WAITING' : 'CREATED'
}

/** A stage that its job's failure found before its turn stays as it was. */
function calledOff(stage: StageFacts): string {
  const { calledOffFrom } = stage
  if (!calledOffFrom) return 'ABORTED'
  if (calledOffFrom === 'created') return beforeItsTurn(stage)
  return calledOffFrom === 'running' ? 'IN_PROGRESS' : calledOffFrom.toUpperCase()
}
