/**
 * Reads a submitted job. Marie's clients submit in three forms: the fields of a WorkInfo, a command with its parameters, or
 * the invoke_action of its gateway. Unknown fields are ignored, as in the original.
 */

import { Problem } from '../../kernel/problem.ts'
import { faultOf, field, isObject, moment, text } from '../../schema/check.ts'
import { year } from '../../schema/fields.ts'
import { flag, jsonObject, type RequestField, someNumber, textField, wholeNumber } from '../kit/fields.ts'
import { readBody } from '../kit/read.ts'
import { statesWithWord } from '../words.ts'
import { nameOf } from './ids.ts'
import { words } from './words.ts'

export type Submission = ReturnType<typeof read>

type Given = Readonly<Record<string, unknown>>

export function readSubmission(body: unknown): Submission {
  if (!isObject(body)) throw new Problem('BODY_INVALID', { why: 'it must be an object' })
  const { parameters = body } = body
  if (!isObject(parameters)) throw invalid('parameters', 'be an object')
  const action = parameters.invoke_action ?? body.invoke_action
  if (action !== undefined) return ofAction(action)
  const { command, name: title, ...rest } = parameters
  if (command === undefined) return read(parameters, parameters.data ?? dataIn(parameters))
  // Some clients send the action without the gateway's wrapper.
  if (command === 'job' && rest.action !== undefined) return ofAction(parameters)
  const data = { ...dataIn(rest), ...(title !== undefined && { name: title }) }
  return read({ ...rest, name: command }, rest.data ?? data)
}

function ofAction(action: unknown): Submission {
  if (!isObject(action)) throw invalid('invoke_action', 'be an object')
  if (action.command !== 'job') throw invalid('invoke_action.command', 'be "job"')
  if (action.action !== 'submit') throw invalid('invoke_action.action', 'be "submit"')
  const { data: _, ...fields } = action
  return read(fields, withoutKey(action))
}

/** The data of a job without `data`: every field that is not one of the job's own. */
function dataIn(given: Given): Given {
  const isField = (name: string) => Object.hasOwn(fields, name) || unused.includes(name)
  return Object.fromEntries(Object.entries(given).filter(([name]) => name === 'metadata' || !isField(name)))
}

/** Marie's fields that have no meaning here. */
const unused = ['header', 'api_key', 'policy', 'job_level', 'run_owner', 'run_attempt_id', 'branch_metadata']

/** An API key is a secret, so it is not stored with the job. */
const withoutKey = ({ api_key: _, ...rest }: Given) => rest

/** Timestamps without a zone are in UTC. */
const isNaive = (value: string) => !/(Z|[+-]\d\d:?\d\d)$/i.test(value)
const dateOf = (value: string) => new Date(isNaive(value) && value.includes('T') ? `${value}Z` : value)
const instant = textField(
  field({ type: 'string' }, value =>
    typeof value === 'string' && faultOf(moment, dateOf(value)) === undefined ? undefined : 'be a moment in ISO 8601',
  ),
)

/** The limit for an id in a URL, where it is escaped. */
const longestInPath = 300
const idText = text(150)
const isId = field({ type: 'string' }, value => {
  const must = faultOf(idText, value)
  if (must !== undefined) return must
  return encodeURIComponent(value as string).length > longestInPath ? 'fit into an address' : undefined
})
const name = textField(
  field({ type: 'string' }, value =>
    typeof value === 'string' && value.length <= 200 && /^[\p{L}\p{N}._-]+$/u.test(value)
      ? undefined
      : 'have only letters, digits, hyphens, underscores and periods, and at most 200 of them',
  ),
)

/** In the address of a job, the name of a state means the state. */
const jobId = textField(
  field({ type: 'string' }, value => {
    const isState = typeof value === 'string' && statesWithWord(words.task!, value.toUpperCase()).length > 0
    return isState ? 'not be the name of a state' : faultOf(isId, value)
  }),
)

const dependencies: RequestField<readonly string[]> = {
  check: field({ type: 'array' }, value =>
    Array.isArray(value) && value.length <= 10_000 && value.every(each => faultOf(isId, each) === undefined)
      ? undefined
      : 'be a list of ids',
  ),
}

const newState = textField(
  field({ type: 'string' }, value =>
    typeof value === 'string' && value.toUpperCase() === 'CREATED' ? undefined : 'be CREATED, the state of a new job',
  ),
)

const fields = {
  id: jobId,
  dag_id: textField(isId),
  name,
  queue: name,
  queue_name: name,
  data: jsonObject,
  metadata: jsonObject,
  state: newState,
  priority: wholeNumber(-1_000_000, 1_000_000),
  retry_limit: wholeNumber(0, 999),
  retry_delay: someNumber(0, year),
  retry_backoff: flag,
  run_ttl_seconds: someNumber(0.001, year),
  expire_in_seconds: someNumber(0, 10 * year),
  start_after: instant,
  keep_until: instant,
  soft_sla: instant,
  hard_sla: instant,
  dependencies,
}

/** Marie's defaults apply. An SLA may also be in the metadata. */
function read(given: Given, data: unknown) {
  const metadata = given.metadata ?? {}
  if (!isObject(metadata)) throw invalid('metadata', 'be an object')
  const { soft_sla, hard_sla } = given
  const all = { ...given, soft_sla: soft_sla ?? metadata.soft_sla, hard_sla: hard_sla ?? metadata.hard_sla }
  const job = readBody(all, fields)
  const queue = job.queue ?? job.queue_name
  const type = job.name ?? queue
  if (type === undefined) throw invalid('name', 'be given')
  const { dag_id: dagId, dependencies = [] } = job
  if (dagId === undefined && dependencies.length > 0) throw invalid('dependencies', 'be sent with a dag_id')
  const [softSla, hardSla] = [dateIn(job.soft_sla), dateIn(job.hard_sla)]
  if (softSla !== undefined && hardSla !== undefined && softSla > hardSla)
    throw invalid('soft_sla', 'be before hard_sla')
  return {
    id: job.id && nameOf(job.id),
    dagId: dagId && nameOf(dagId),
    dependencies: [...new Set(dependencies.map(nameOf))],
    name: type,
    queue: queue ?? type,
    data,
    metadata,
    priority: job.priority ?? 0,
    retryLimit: job.retry_limit ?? 2,
    retryDelay: job.retry_delay ?? 2,
    retryBackoff: job.retry_backoff ?? true,
    runTtlSeconds: job.run_ttl_seconds ?? 60,
    /** 0: never. */
    expireInSeconds: job.expire_in_seconds ?? 0,
    startAfter: dateIn(job.start_after),
    keepUntil: dateIn(job.keep_until),
    softSla,
    hardSla,
  }
}

const dateIn = (value: string | undefined) => (value === undefined ? undefined : dateOf(value))

function invalid(option: string, must: string): Problem {
  return new Problem('OPTION_INVALID', { at: 'body', option, must })
}
