import { asItWillEnd, type StageFacts, type Words } from '../words.ts'

export const jobWords = ['PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'ABORTED', 'PAUSED', 'CREATED'] as const
export const stageWords = ['CREATED', 'PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'ABORTED', 'WAITING'] as const
export const taskWords = ['CREATED', 'PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'RETRIED'] as const

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
    created: { label: 'CREATED, or WAITING if it has a gate or is held', of: wordBeforeStart },
    waiting: 'WAITING',
    pending: 'PENDING',
    running: 'IN_PROGRESS',
    stopping: { label: 'as it will end', of: stage => (stage.endsAs === 'failed' ? 'FAILED' : cancelledWord(stage)) },
    succeeded: 'COMPLETED',
    partial: 'COMPLETED',
    failed: 'FAILED',
    skipped: 'COMPLETED',
    cancelled: { label: 'ABORTED; because its job failed: what it was before', of: cancelledWord },
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

/** A stage that will not open by itself, because of a gate or a hold, is WAITING even before its needs are met. */
function wordBeforeStart({ gate, held }: StageFacts): string {
  return gate || held ? 'WAITING' : 'CREATED'
}

/** A stage that had not begun when its job failed keeps its status. */
function cancelledWord(stage: StageFacts): string {
  const { calledOffFrom } = stage
  if (!calledOffFrom) return 'ABORTED'
  if (calledOffFrom === 'created') return wordBeforeStart(stage)
  return calledOffFrom === 'running' ? 'IN_PROGRESS' : calledOffFrom.toUpperCase()
}
