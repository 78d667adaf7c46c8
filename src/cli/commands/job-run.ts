import { withoutUndefined } from '../../kernel/without-undefined.ts'
import type { JobView } from '../../protocol/jobs/jobs.ts'
import type { PawlApi } from '../../protocol/operations.ts'
import { apiCommand, type CommandContext, type CommandResult } from '../command.ts'
import { durationBetween } from '../durations.ts'
import { exitCodes } from '../error-message.ts'
import { findJobId, jobParameter } from '../find-id.ts'
import { invalidCommand } from '../parse.ts'
import { watchJob } from '../progress.ts'
import { localFlag, readJob, specHelp } from '../read-spec.ts'
import { controlOptions, historyFlags, idempotencyFlag } from '../shared-flags.ts'
import { endedBadly, hasEnded, readableCause, styledState } from '../states.ts'
import { type Line, styled } from '../styled-line.ts'

const waitFlags = {
  strict: { kind: 'switch', summary: 'exit with 1 if the job ends as partial, too' },
  quiet: { kind: 'switch', short: 'q', summary: 'show no progress' },
} as const

export const jobRun = apiCommand({
  name: 'job run',
  summary: 'Submit a job.',
  details: `${specHelp}

Only the spec is sent. Input files are not uploaded: workers read them from where they are.`,
  parameters: { 'spec?': 'the file with the job spec' },
  flags: {
    pipeline: {
      kind: 'text',
      value: 'NAME',
      summary: 'submit a pipeline from the settings of the server, instead of a file',
    },
    input: { kind: 'json', value: 'JSON', summary: 'the input of the job; replaces the one in the spec' },
    wait: { kind: 'switch', short: 'w', summary: 'wait until the job has ended, and show its progress and result' },
    ...localFlag,
    ...waitFlags,
    ...idempotencyFlag,
    as: historyFlags.as,
  },
  async run(context) {
    const { api, args, flags } = context
    if ((args.spec === undefined) === (flags.pipeline === undefined))
      throw invalidCommand('pawl job run requires either SPEC or --pipeline.')
    const { spec, fromPipeline } =
      args.spec === undefined
        ? pipelineSpec(flags.pipeline!)
        : await readJob(args.spec, { local: flags.local === true })
    if (fromPipeline && !flags.local) context.output.printNotice(kubernetesNotice)
    const { actor } = controlOptions(flags)
    const call = withoutUndefined({ actor, idempotencyKey: flags['idempotency-key'] })
    const submitted = await api.submit(flags.input === undefined ? spec : { ...spec, input: flags.input }, call)
    if (flags.wait) return waitFor(api, submitted.id, context, submitted)
    const job = await api.job(submitted.id)
    return { data: job, show: () => [['Submitted ', styled('bold', job.name), `: ${job.id}`]] }
  },
})

export const jobWait = apiCommand({
  name: 'job wait',
  summary: 'Wait until a job has ended, and show its progress.',
  details: 'The exit code is 0 if the job succeeded, at least partially, and 1 otherwise.',
  parameters: jobParameter,
  completes: 'job',
  flags: waitFlags,
  run: async context => waitFor(context.api, await findJobId(context.api, context.args.id), context),
})

const pipelineSpec = (pipeline: string) => ({ spec: { pipeline }, fromPipeline: false })

const kubernetesNotice =
  'Pipelines run in Kubernetes, which requires a server with --kubernetes. To run this one in workers with --commands, use --local.'

type WaitContext = Pick<CommandContext, 'output' | 'json' | 'stopSignal'> & {
  readonly flags: { readonly strict?: true | undefined; readonly quiet?: true | undefined }
}

async function waitFor(api: PawlApi, id: string, context: WaitContext, submitted?: JobView): Promise<CommandResult> {
  const { output, json, flags, stopSignal } = context
  const silent = json || flags.quiet === true
  const job = await watchJob(id, { api, output, signal: stopSignal(), silent, ...(submitted && { submitted }) })
  if (!hasEnded('job', job.state)) {
    return { data: job, code: 130, show: () => [`The job is still running. To wait for it again: pawl job wait ${id}`] }
  }
  const isBad = endedBadly('job', job.state) || (flags.strict === true && job.state === 'partial')
  return { data: job, code: isBad ? exitCodes.bad : exitCodes.good, show: () => outcome(job) }
}

function outcome(job: JobView): Line[] {
  const { good, bad } = job.progress
  const counts = `${good} good, ${bad} bad, in ${durationBetween(job.createdAt, job.endedAt)}`
  const unsuccessful = job.stages.filter(
    ({ state }) => state === 'failed' || state === 'partial' || state === 'cancelled',
  )
  return [
    [
      styled('bold', job.name),
      ' ',
      styledState('job', job.state),
      job.cause === null ? '' : `: ${readableCause(job.cause)}`,
      ` (${counts})`,
    ],
    ...unsuccessful.map(({ name, state, error, cause }): Line => {
      const why = error?.message ?? readableCause(cause)
      return ['  stage ', name, ' ', styledState('stage', state), why === null ? '' : `: ${why}`]
    }),
    ...(bad === 0 ? [] : [styled('dim', `  To see the errors: pawl job describe ${job.id.slice(-8)}`)]),
  ]
}
