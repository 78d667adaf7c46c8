/**
 * Reads a submitted job. Marie's clients submit in three forms: the fields of a WorkInfo, a command with its parameters, or
 * the invoke_action of its gateway. Unknown fields are ignored, as in the original.
 */

import { createHash } from 'node:crypto'
import { idOfHash } from '../../kernel/id.ts'
import { Problem } from '../../kernel/problem.ts'
import { faultOf, field, flag, isObject, moment, number, object, text } from '../../schema/check.ts'
import { isId, priority, year } from '../../schema/fields.ts'
import { openBody, readBody } from '../kit/requests.ts'
import { statesWithWord } from '../words.ts'
import { words } from './words.ts'

export type Submission = ReturnType<typeof read>

type SentFields = Readonly<Record<string, unknown>>

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
function dataIn(sent: SentFields): SentFields {
  const isField = (name: string) => Object.hasOwn(jobBody.properties, name) || unused.includes(name)
  return Object.fromEntries(Object.entries(sent).filter(([name]) => name === 'metadata' || !isField(name)))
}

/** Marie's fields that have no meaning here. */
const unused = ['header', 'api_key', 'policy', 'job_level', 'run_owner', 'run_attempt_id', 'branch_metadata']

/** An API key is a secret, so it is not stored with the job. */
const withoutKey = ({ api_key: _, ...rest }: SentFields) => rest

/** Timestamps without a zone are in UTC. */
const isNaive = (value: string) => !/(Z|[+-]\d\d:?\d\d)$/i.test(value)
const dateOf = (value: string) => new Date(isNaive(value) && value.includes('T') ? `${value}Z` : value)
const instant = field<string>({ type: 'string' }, value =>
  typeof value === 'string' && faultOf(moment, dateOf(value)) === undefined ? undefined : 'be an ISO 8601 time',
)

/** The limit for an id in a URL, where it is escaped. */
const longestInPath = 300
const idText = text(150)
const anyId = field<string>({ type: 'string' }, value => {
  const must = faultOf(idText, value)
  if (must !== undefined) return must
  return encodeURIComponent(value as string).length > longestInPath ? 'fit into an address' : undefined
})
const name = field<string>({ type: 'string' }, value =>
  typeof value === 'string' && value.length <= 200 && /^[\p{L}\p{N}._-]+$/u.test(value)
    ? undefined
    : 'have only letters, digits, hyphens, underscores and periods, and at most 200 of them',
)

/** In the address of a job, the name of a state means the state. */
const jobId = field<string>({ type: 'string' }, value => {
  const isState = typeof value === 'string' && statesWithWord(words.task, value.toUpperCase()).length > 0
  return isState ? 'not be the name of a state' : faultOf(anyId, value)
})

const dependencies = field<readonly string[]>({ type: 'array' }, value =>
  Array.isArray(value) && value.length <= 10_000 && value.every(each => faultOf(anyId, each) === undefined)
    ? undefined
    : 'be a list of ids',
)

const newState = field<string>({ type: 'string' }, value =>
  typeof value === 'string' && value.toUpperCase() === 'CREATED' ? undefined : 'be CREATED, the state of a new job',
)

const jobBody = openBody({
  id: jobId,
  dag_id: anyId,
  name,
  queue: name,
  queue_name: name,
  data: object,
  metadata: object,
  state: newState,
  priority,
  retry_limit: number({ from: 0, to: 999, whole: true }),
  retry_delay: number({ from: 0, to: year }),
  retry_backoff: flag,
  run_ttl_seconds: number({ from: 0.001, to: year }),
  expire_in_seconds: number({ from: 0, to: 10 * year }),
  start_after: instant,
  keep_until: instant,
  soft_sla: instant,
  hard_sla: instant,
  dependencies,
})

/** Marie's defaults apply. An SLA may also be in the metadata. */
function read(sent: SentFields, data: unknown) {
  const metadata = sent.metadata ?? {}
  if (!isObject(metadata)) throw invalid('metadata', 'be an object')
  const { soft_sla, hard_sla } = sent
  const all = { ...sent, soft_sla: soft_sla ?? metadata.soft_sla, hard_sla: hard_sla ?? metadata.hard_sla }
  const job = readBody(all, jobBody)
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

/**
 * Marie's ids are any text, Pawl's are UUIDs. A text that is not a UUID is always mapped to the same one. A job and a DAG
 * with the same name have different ids.
 */
export function idOf(kind: 'job' | 'dag', name: string): string {
  if (isId(name)) return name.toLowerCase()
  const hash = createHash('sha256').update(`marie ${kind} ${name}`).digest('hex')
  // The leading f puts these ids first in lists, which are ordered by id.
  return idOfHash(`f${hash.slice(1)}`)
}

/** UUIDs are compared in lower case. */
const nameOf = (id: string) => (isId(id) ? id.toLowerCase() : id)

/** Fields of a job that Pawl has in other units or not at all. They are kept in the task's metadata, under `marie`. */
export function keptOf(job: Submission) {
  return {
    id: job.id ?? null,
    dag_id: job.dagId ?? null,
    dependencies: job.dependencies,
    retry_limit: job.retryLimit,
    retry_delay: job.retryDelay,
    retry_backoff: job.retryBackoff,
    expire_in_seconds: job.expireInSeconds,
    soft_sla: job.softSla?.toISOString() ?? null,
    hard_sla: job.hardSla?.toISOString() ?? null,
  }
}
