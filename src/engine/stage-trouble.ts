import type { Context } from './context.ts'
import { driveJob } from './drive.ts'

/**
 * Shows on an open stage why it does not go on, or that it does again (null). It decides nothing: once the stage ends, its
 * error is what ended it. Safe to repeat, and when two do it at once, for the job is locked.
 */
export async function noteTrouble(
  context: Context,
  { stageId, jobId, round }: { readonly stageId: string; readonly jobId: string; readonly round: number },
  message: string | null,
): Promise<void> {
  await driveJob(context, jobId, 'babysitter', book => {
    const stage = book.stages.find(({ id }) => id === stageId)
    const isOpen = stage?.state === 'pending' || stage?.state === 'running'
    if (stage === undefined || !isOpen || stage.round !== round || stage.endsAs !== null) return
    book.setStage(stage, { error: message === null ? null : { message } })
  })
}
