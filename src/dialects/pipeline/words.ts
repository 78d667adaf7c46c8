import { rollUpStage } from '../../kernel/rollup.ts'
import type { StageFacts, Words } from '../words.ts'

export const statuses = ['pending', 'running', 'completed', 'partial', 'failed', 'cancelled'] as const

export const words = {
  task: null,
  stage: {
    created: null,
    waiting: null,
    pending: null,
    running: 'running',
    stopping: 'running',
    succeeded: { label: 'completed; skipped if its worker skipped it', of: succeeded },
    partial: 'partial',
    failed: 'failed',
    skipped: 'skipped',
    cancelled: { label: 'skipped; if it had begun: completed, partial or failed, as its tasks ended', of: cancelled },
  },
  job: {
    created: 'pending',
    pending: 'pending',
    running: 'running',
    compensating: 'running',
    paused: 'running',
    stopping: 'running',
    succeeded: 'completed',
    partial: 'partial',
    failed: 'failed',
    cancelled: 'cancelled',
    expired: 'failed',
  },
  artifact: null,
} as const satisfies Words

const wasSkipped = ({ progress }: StageFacts) =>
  progress !== undefined && progress.total > 0 && progress.skipped === progress.total

function succeeded(stage: StageFacts): string {
  return wasSkipped(stage) ? 'skipped' : 'completed'
}

/** A stage of a cancelled job may still have finished. Only a stage that never ran is `skipped`. */
function cancelled(stage: StageFacts): string {
  const { progress, startedAt } = stage
  const hasRun = typeof startedAt === 'string' || (progress !== undefined && progress.good > 0)
  if (progress === undefined || !hasRun || wasSkipped(stage)) return 'skipped'
  const end = rollUpStage(progress)
  return end === 'succeeded' ? 'completed' : end
}
