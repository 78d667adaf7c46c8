import { rollUpStage } from '../../kernel/rollup.ts'
import type { StageFacts, Words } from '../words.ts'

export const words: Words = {
  task: null,
  stage: {
    created: null,
    waiting: null,
    pending: null,
    running: 'running',
    stopping: 'running',
    succeeded: { says: 'completed; skipped if its worker skipped it', of: succeeded },
    partial: 'partial',
    failed: 'failed',
    skipped: 'skipped',
    cancelled: { says: 'skipped; if it had begun: completed, partial or failed, as its tasks ended', of: cancelled },
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
}

const wasSkipped = ({ progress }: StageFacts) =>
  progress !== undefined && progress.total > 0 && progress.skipped === progress.total

function succeeded(stage: StageFacts): string {
  return wasSkipped(stage) ? 'skipped' : 'completed'
}

/** A stage of a job that was cancelled may have finished all the same. `skipped` is only said of one that was not run. */
function cancelled(stage: StageFacts): string {
  const { progress, startedAt } = stage
  const hasRun = typeof startedAt === 'string' || (progress !== undefined && progress.good > 0)
  if (progress === undefined || !hasRun || wasSkipped(stage)) return 'skipped'
  const end = rollUpStage(progress)
  return end === 'succeeded' ? 'completed' : end
}
