import type { JobView } from '../../protocol/jobs/jobs.ts'
import { callFlags, callOf, cancelFlags, cancelOf } from '../asking.ts'
import { apiCommand, type Command, showingCommand } from '../command.ts'
import { findJobId } from '../find-id.ts'
import { type Line, styled } from '../line.ts'
import { stateOf } from '../states.ts'

const takes = { id: 'the job, or the beginning or the end of its id' } as const

const jobLine = ({ name, id, state, endsAs }: JobView): Line => [
  styled('bold', name),
  ` ${id} is `,
  stateOf('job', state),
  endsAs === null || endsAs === state ? '' : `, and will be ${endsAs}`,
]

const answer = (job: JobView) => ({ data: job, show: () => [jobLine(job)] })

/** Moves that want nothing but a reason. */
const plain = (word: string, summary: string, move: 'startJob' | 'pauseJob' | 'resumeJob' | 'sealJob'): Command =>
  showingCommand({
    name: `job ${word}`,
    summary,
    takes,
    flags: callFlags,
    run: async ({ api, args, flags }) => answer(await api[move](await findJobId(api, args.id), callOf(flags))),
  })

const jobCancel = showingCommand({
  name: 'job cancel',
  summary: 'Cancel a job.',
  takes,
  flags: cancelFlags,
  run: async ({ api, args, flags }) => answer(await api.cancelJob(await findJobId(api, args.id), cancelOf(flags))),
})

const jobRetry = showingCommand({
  name: 'job retry',
  summary: 'Retry what did not succeed.',
  takes,
  flags: { ...callFlags, clone: { kind: 'switch', summary: 'retry in a new job that contains only that work' } },
  async run({ api, args, flags }) {
    const id = await findJobId(api, args.id)
    return answer(await api.retryJob(id, { ...callOf(flags), ...(flags.clone && { clone: true }) }))
  },
})

const jobDelete = apiCommand({
  name: 'job delete',
  summary: 'Delete a job that has ended, with its history.',
  takes,
  flags: callFlags,
  async run({ api, args, flags }) {
    const id = await findJobId(api, args.id)
    await api.deleteJob(id, callOf(flags))
    return { data: { id, deleted: true }, show: () => [`Deleted ${id}.`] }
  },
})

export const jobControl: readonly Command[] = [
  plain('start', 'Start a job that was submitted with `start: false`.', 'startJob'),
  plain('pause', 'Pause a job. Running tasks may finish; no more are claimed.', 'pauseJob'),
  plain('resume', 'Resume a paused job, or start the next round of one that failed or was cancelled.', 'resumeJob'),
  jobCancel,
  jobRetry,
  plain('seal', 'Close a job to further stages.', 'sealJob'),
  jobDelete,
]
