import type { PawlApi } from '../../protocol/api.ts'
import type { JobView } from '../../protocol/jobs/jobs.ts'
import { callFlags, callOf, onceFlag, said } from '../asking.ts'
import { type Answer, type Ask, apiCommand } from '../command.ts'
import { exitCodes } from '../complain.ts'
import { findJobId } from '../find-id.ts'
import { type Line, styled } from '../line.ts'
import { between } from '../moments.ts'
import { refused } from '../parse.ts'
import { localFlag, readJob, specHelp } from '../read-spec.ts'
import { causeOf, endedBadly, hasEnded, stateOf } from '../states.ts'
import { watchJob } from '../watch.ts'

const waitFlags = {
  strict: { kind: 'switch', summary: 'treat a job that ends as partial as failed' },
  quiet: { kind: 'switch', short: 'q', summary: 'show no progress' },
} as const

export const jobRun = apiCommand({
  name: 'job run',
  summary: 'Submit a job.',
  more: `${specHelp}

Only the spec is sent. Nothing is uploaded: inputs stay where they are, and workers fetch what they need of them.`,
  takes: { 'spec?': 'the file of the job' },
  flags: {
    pipeline: { kind: 'text', value: 'NAME', summary: 'instead of a file: a pipeline from the settings of the server' },
    input: { kind: 'json', value: 'JSON', summary: 'the input of the job; replaces the one in the spec' },
    wait: { kind: 'switch', short: 'w', summary: 'wait until it has ended, and show the result' },
    ...localFlag,
    ...waitFlags,
    ...onceFlag,
    as: callFlags.as,
  },
  async run(ask) {
    const { api, args, flags } = ask
    if ((args.spec === undefined) === (flags.pipeline === undefined)) throw refused('A file or a --pipeline: name one.')
    const { spec, fromPipeline } =
      args.spec === undefined ? named(flags.pipeline!) : await readJob(args.spec, { local: flags.local === true })
    if (fromPipeline && !flags.local) ask.screen.note(inKubernetes)
    const { actor } = callOf(flags)
    const call = said({ actor, idempotencyKey: flags['idempotency-key'] })
    const submitted = await api.submit(flags.input === undefined ? spec : { ...spec, input: flags.input }, call)
    if (flags.wait) return waitFor(api, submitted.id, ask, submitted)
    const job = await api.job(submitted.id)
    return { data: job, show: () => [['Submitted ', styled('bold', job.name), `: ${job.id}`]] }
  },
})

export const jobWait = apiCommand({
  name: 'job wait',
  summary: 'Wait until a job has ended, and show its progress.',
  more: 'Ends with 0 if the job ended well or partly so, and with 1 if it did not.',
  takes: { id: 'the job, or the beginning or the end of its id' },
  flags: waitFlags,
  run: async ask => waitFor(ask.api, await findJobId(ask.api, ask.args.id), ask),
})

const named = (pipeline: string) => ({ spec: { pipeline }, fromPipeline: false })

const inKubernetes =
  'A pipeline runs in Kubernetes, by a server with --kubernetes; --local has workers with --commands run it.'

type WaitAsk = Pick<Ask, 'screen' | 'json' | 'untilTold'> & {
  readonly flags: { readonly strict?: true | undefined; readonly quiet?: true | undefined }
}

async function waitFor(api: PawlApi, id: string, ask: WaitAsk, submitted?: JobView): Promise<Answer> {
  const { screen, json, flags, untilTold } = ask
  const silent = json || flags.quiet === true
  const job = await watchJob(id, { api, screen, signal: untilTold(), silent, ...(submitted && { submitted }) })
  if (!hasEnded('job', job.state)) {
    return { data: job, code: 130, show: () => [`The job goes on; pawl job wait ${id} waits for it again.`] }
  }
  const isBad = endedBadly('job', job.state) || (flags.strict === true && job.state === 'partial')
  return { data: job, code: isBad ? exitCodes.bad : exitCodes.good, show: () => outcome(job) }
}

/** How it ended, and what was the cause. */
function outcome(job: JobView): Line[] {
  const { good, bad } = job.progress
  const counts = `${good} good, ${bad} bad, in ${between(job.createdAt, job.endedAt)}`
  const culprits = job.stages.filter(({ state }) => state === 'failed' || state === 'partial' || state === 'cancelled')
  return [
    [
      styled('bold', job.name),
      ' ',
      stateOf('job', job.state),
      job.cause === null ? '' : `: ${causeOf(job.cause)}`,
      ` (${counts})`,
    ],
    ...culprits.map(({ name, state, error, cause }): Line => {
      const why = error?.message ?? causeOf(cause)
      return ['  stage ', name, ' ', stateOf('stage', state), why === null ? '' : `: ${why}`]
    }),
    ...(bad === 0 ? [] : [styled('dim', `  pawl job describe ${job.id.slice(-8)} shows the errors.`)]),
  ]
}
