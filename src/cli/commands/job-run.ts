import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { loadModule } from '../../config/load-module.ts'
import { isObject } from '../../kernel/check.ts'
import { Problem } from '../../kernel/problem.ts'
import type { PawlApi } from '../../protocol/api.ts'
import type { JobView } from '../../protocol/jobs.ts'
import { specInvalid } from '../../spec/faults.ts'
import type { JobSpec } from '../../spec/job-spec.ts'
import { readYaml } from '../../spec/read-yaml.ts'
import { callFlags, callOf, onceFlag, said } from '../asking.ts'
import { type Answer, type Ask, apiCommand } from '../command.ts'
import { exitCodes } from '../complain.ts'
import { findJobId } from '../find-id.ts'
import { type Line, styled } from '../line.ts'
import { between } from '../moments.ts'
import { causeOf, endedBadly, hasEnded, stateOf } from '../states.ts'
import { watchJob } from '../watch.ts'

const waitFlags = {
  strict: { kind: 'switch', says: 'a job that ended as partial has ended badly too' },
  quiet: { kind: 'switch', short: 'q', says: 'show nothing on the way' },
} as const

export const jobRun = apiCommand({
  name: 'job run',
  says: 'Submit a job.',
  more: 'The spec is YAML, JSON, or a module (.ts, .js, .mjs) that exports one; "-" reads it from the standard input.',
  takes: { spec: 'the file of the job' },
  flags: {
    input: { kind: 'json', value: 'JSON', says: 'its input, in place of the one in the spec' },
    wait: { kind: 'switch', short: 'w', says: 'wait until it has ended, and say how' },
    ...waitFlags,
    ...onceFlag,
    as: callFlags.as,
  },
  async run(ask) {
    const { api, args, flags } = ask
    const spec = await readSpec(args.spec)
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
  says: 'Wait until a job has ended, and show how far it is.',
  more: 'Ends with 0 if the job ended well or partly so, and with 1 if it did not.',
  takes: { id: 'the job, or the beginning or the end of its id' },
  flags: waitFlags,
  run: async ask => waitFor(ask.api, await findJobId(ask.api, ask.args.id), ask),
})

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

async function readSpec(path: string): Promise<JobSpec> {
  if (/\.[cm]?[jt]s$/.test(path)) return specIn(path, await loadModule(resolve(path)))
  const read = readYaml(textOf(path))
  if ('faults' in read) throw specInvalid(read.faults)
  // What else is wrong with it, whoever takes it says.
  if (!isObject(read.value)) throw specInvalid([{ at: 'spec', why: 'must be an object' }])
  return read.value as unknown as JobSpec
}

function textOf(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8')
  } catch (error) {
    throw new Problem('FILE_INVALID', { file: path, why: (error as Error).message }, error)
  }
}

function specIn(file: string, module: Readonly<Record<string, unknown>>): JobSpec {
  const isSpec = (value: unknown) => isObject(value) && typeof value.name === 'string' && !('run' in value)
  const specs = Object.entries(module).filter(([, value]) => isSpec(value))
  const found = specs.find(([name]) => name === 'default') ?? specs[0]
  if (found === undefined) throw new Problem('FILE_INVALID', { file, why: 'it exports no job spec' })
  if (specs.length > 1 && found[0] !== 'default') {
    const names = specs.map(([name]) => name).join(', ')
    throw new Problem('FILE_INVALID', {
      file,
      why: `it exports more than one job spec (${names}) and none as the default`,
    })
  }
  return found[1] as JobSpec
}
