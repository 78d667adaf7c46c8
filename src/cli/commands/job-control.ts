import type { JobView } from '../../protocol/jobs.ts'
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
const plain = (word: string, says: string, move: 'startJob' | 'pauseJob' | 'resumeJob' | 'sealJob'): Command =>
  showingCommand({
    name: `job ${word}`,
    says,
    takes,
    flags: callFlags,
    run: async ({ api, args, flags }) => answer(await api[move](await findJobId(api, args.id), callOf(flags))),
  })

const jobCancel = showingCommand({
  name: 'job cancel',
  says: 'Call a job off.',
  takes,
  flags: cancelFlags,
  run: async ({ api, args, flags }) => answer(await api.cancelJob(await findJobId(api, args.id), cancelOf(flags))),
})

const jobRetry = showingCommand({
  name: 'job retry',
  says: 'Do again what did not succeed.',
  takes,
  flags: { ...callFlags, clone: { kind: 'switch', says: 'in a new job, with only that' } },
  async run({ api, args, flags }) {
    const id = await findJobId(api, args.id)
    return answer(await api.retryJob(id, { ...callOf(flags), ...(flags.clone && { clone: true }) }))
  },
})

const jobDelete = apiCommand({
  name: 'job delete',
  says: 'Delete a job that has ended, and all that is kept of it.',
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
  plain('pause', 'Claim nothing more of a job; what is in hand may finish.', 'pauseJob'),
  plain('resume', 'Let a paused job go on, or open the next round of one that ended badly.', 'resumeJob'),
  jobCancel,
  jobRetry,
  plain('seal', 'Say that no more stages will come.', 'sealJob'),
  jobDelete,
]
