import type { JobView } from '../../protocol/jobs/jobs.ts'
import { apiCommand, type Command, showingCommand } from '../command.ts'
import { findJobId } from '../find-id.ts'
import { cancelFlags, cancelOptions, controlOptions, historyFlags } from '../shared-flags.ts'
import { styledState } from '../states.ts'
import { type Line, styled } from '../styled-line.ts'

const parameters = { id: 'the id of the job, or its beginning or end' } as const

const jobLine = ({ name, id, state, endsAs }: JobView): Line => [
  styled('bold', name),
  ` ${id} is `,
  styledState('job', state),
  endsAs === null || endsAs === state ? '' : `, and will end as ${endsAs}`,
]

const answer = (job: JobView) => ({ data: job, show: () => [jobLine(job)] })

/** Commands whose only flags are those for the history. */
const simpleCommand = (
  word: string,
  summary: string,
  move: 'startJob' | 'pauseJob' | 'resumeJob' | 'sealJob',
): Command =>
  showingCommand({
    name: `job ${word}`,
    summary,
    parameters,
    flags: historyFlags,
    run: async ({ api, args, flags }) => answer(await api[move](await findJobId(api, args.id), controlOptions(flags))),
  })

const jobCancel = showingCommand({
  name: 'job cancel',
  summary: 'Cancel a job.',
  parameters,
  flags: cancelFlags,
  run: async ({ api, args, flags }) => answer(await api.cancelJob(await findJobId(api, args.id), cancelOptions(flags))),
})

const jobRetry = showingCommand({
  name: 'job retry',
  summary: 'Retry the stages and tasks that did not succeed.',
  parameters,
  flags: {
    ...historyFlags,
    clone: { kind: 'switch', summary: 'retry in a new job that contains only the unsuccessful work' },
  },
  async run({ api, args, flags }) {
    const id = await findJobId(api, args.id)
    return answer(await api.retryJob(id, { ...controlOptions(flags), ...(flags.clone && { clone: true }) }))
  },
})

const jobDelete = apiCommand({
  name: 'job delete',
  summary: 'Delete a job that has ended, with its history.',
  parameters,
  flags: historyFlags,
  async run({ api, args, flags }) {
    const id = await findJobId(api, args.id)
    await api.deleteJob(id, controlOptions(flags))
    return { data: { id, deleted: true }, show: () => [`Deleted ${id}.`] }
  },
})

export const jobControl: readonly Command[] = [
  simpleCommand('start', 'Start a job that was submitted with `start: false`.', 'startJob'),
  simpleCommand('pause', 'Pause a job. Running tasks may finish; no more are claimed.', 'pauseJob'),
  simpleCommand(
    'resume',
    'Resume a paused job, or start the next round of one that failed or was cancelled.',
    'resumeJob',
  ),
  jobCancel,
  jobRetry,
  simpleCommand('seal', 'Seal a job: no more stages can be added.', 'sealJob'),
  jobDelete,
]
