/**
 * What a client asks for when it submits a job. Marie's clients say it in three ways: the fields of a WorkInfo; a command
 * with its parameters; or an invoke_action, as its gateway takes it. What is not known is passed over, as it does.
 */

import { Problem } from '../../kernel/problem.ts'
import {
  checkOptions,
  type Fields,
  faultOf,
  field,
  isObject,
  moment,
  number,
  object,
  oneOf,
  text,
} from '../../schema/check.ts'
import { year } from '../../schema/fields.ts'
import { statesCalled } from '../words.ts'
import { nameOf } from './ids.ts'
import { words } from './words.ts'

export interface Submission {
  readonly id: string | undefined
  readonly dagId: string | undefined
  readonly dependencies: readonly string[]
  readonly name: string
  readonly queue: string
  readonly data: unknown
  readonly metadata: Record<string, unknown>
  readonly priority: number
  readonly retryLimit: number
  readonly retryDelay: number
  readonly retryBackoff: boolean
  readonly runTtlSeconds: number
  /** 0: for ever. */
  readonly expireInSeconds: number
  readonly startAfter: Date | undefined
  readonly keepUntil: Date | undefined
  readonly softSla: Date | undefined
  readonly hardSla: Date | undefined
}

type Given = Readonly<Record<string, unknown>>

export function readSubmission(body: unknown): Submission {
  if (!isObject(body)) throw new Problem('BODY_INVALID', { why: 'it must be an object' })
  const { parameters = body } = body
  if (!isObject(parameters)) throw invalid('parameters', 'be an object')
  const action = parameters.invoke_action ?? body.invoke_action
  if (action !== undefined) return ofAction(action)
  const { command, name: title, ...rest } = parameters
  if (command === undefined) return read(parameters, parameters.data ?? dataIn(parameters))
  // What the gateway wraps, some say without its wrapping.
  if (command === 'job' && rest.action !== undefined) return ofAction(parameters)
  const data = { ...dataIn(rest), ...(title !== undefined && { name: title }) }
  return read({ ...rest, name: command }, rest.data ?? data)
}

function ofAction(action: unknown): Submission {
  if (!isObject(action)) throw invalid('invoke_action', 'be an object')
  if (action.command !== 'job') throw invalid('invoke_action.command', 'be "job": no other is known')
  if (action.action !== 'submit') throw invalid('invoke_action.action', 'be "submit": no other is known')
  const { data: _, ...said } = action
  return read(said, withoutKey(action))
}

/** What a job is given that has no `data`: whatever is none of its own fields. */
function dataIn(said: Given): Given {
  const isField = (name: string) => Object.hasOwn(fields, name) || unused.includes(name)
  return Object.fromEntries(Object.entries(said).filter(([name]) => name === 'metadata' || !isField(name)))
}

/** Fields of Marie's that mean nothing here. */
const unused = ['header', 'api_key', 'policy', 'job_level', 'run_owner', 'run_attempt_id', 'branch_metadata']

/** A key opens more than the job that it came with, so it is not kept. */
const withoutKey = ({ api_key: _, ...rest }: Given) => rest

/** Naive moments are of UTC. */
const isNaive = (value: string) => !/(Z|[+-]\d\d:?\d\d)$/i.test(value)
const dateOf = (value: string) => new Date(isNaive(value) && value.includes('T') ? `${value}Z` : value)
const instant = field({ type: 'string' }, value =>
  typeof value === 'string' && faultOf(moment, dateOf(value)) === undefined ? undefined : 'be a moment in ISO 8601',
)

/** As an address holds it. */
const longestInPath = 300
const id = field({ type: 'string' }, value => {
  const must = faultOf(text(150), value)
  if (must !== undefined) return must
  return encodeURIComponent(value as string).length > longestInPath ? 'fit into an address' : undefined
})
const name = field({ type: 'string' }, value =>
  typeof value === 'string' && value.length <= 200 && /^[\p{L}\p{N}._-]+$/u.test(value)
    ? undefined
    : 'have only letters, digits, hyphens, underscores and periods, and at most 200 of them',
)
const seconds = number({ from: 0, to: year })

/** At the address of a job, such a name is a state. */
const jobId = field({ type: 'string' }, value => {
  const isState = typeof value === 'string' && statesCalled(words.task!, value.toUpperCase()).length > 0
  return isState ? 'not be the name of a state' : faultOf(id, value)
})

const fields = {
  id: jobId,
  dag_id: id,
  name,
  queue: name,
  queue_name: name,
  data: object,
  metadata: object,
  state: field({}, value =>
    typeof value === 'string' && value.toUpperCase() === 'CREATED' ? undefined : 'be CREATED, as every job begins',
  ),
  priority: number({ from: -1_000_000, to: 1_000_000, whole: true }),
  retry_limit: number({ from: 0, to: 999, whole: true }),
  retry_delay: seconds,
  retry_backoff: oneOf([true, false]),
  run_ttl_seconds: number({ from: 0.001, to: year }),
  expire_in_seconds: number({ from: 0, to: 10 * year }),
  start_after: instant,
  keep_until: instant,
  soft_sla: instant,
  hard_sla: instant,
  dependencies: field({}, value =>
    Array.isArray(value) && value.length <= 10_000 && value.every(each => faultOf(id, each) === undefined)
      ? undefined
      : 'be a list of ids',
  ),
} satisfies Fields

type Text = 'id' | 'dag_id' | 'name' | 'queue' | 'queue_name'
type Amount = 'priority' | 'retry_limit' | 'retry_delay' | 'run_ttl_seconds' | 'expire_in_seconds'
type Moment = 'start_after' | 'keep_until' | 'soft_sla' | 'hard_sla'
type Said = Partial<
  Record<Text | Moment, string> & Record<Amount, number> & { retry_backoff: boolean; dependencies: readonly string[] }
>

/** Its own defaults, where it has some. */
function read(given: Given, data: unknown): Submission {
  const metadata = given.metadata ?? {}
  if (!isObject(metadata)) throw invalid('metadata', 'be an object')
  const { soft_sla, hard_sla } = given
  const all = { ...given, soft_sla: soft_sla ?? metadata.soft_sla, hard_sla: hard_sla ?? metadata.hard_sla }
  const known = Object.entries(all).filter(([key, value]) => Object.hasOwn(fields, key) && value !== null)
  const said: Said = Object.fromEntries(known)
  checkOptions(said, fields, 'invoke')
  const queue = said.queue ?? said.queue_name
  const type = said.name ?? queue
  if (type === undefined) throw invalid('name', 'be given')
  const { dag_id: dagId, dependencies = [] } = said
  if (dagId === undefined && dependencies.length > 0) throw invalid('dependencies', 'stand beside a dag_id')
  const [softSla, hardSla] = [dateIn(said.soft_sla), dateIn(said.hard_sla)]
  if (softSla !== undefined && hardSla !== undefined && softSla > hardSla)
    throw invalid('soft_sla', 'be before hard_sla')
  return {
    id: said.id && nameOf(said.id),
    dagId: dagId && nameOf(dagId),
    dependencies: [...new Set(dependencies.map(nameOf))],
    name: type,
    queue: queue ?? type,
    data,
    metadata,
    priority: said.priority ?? 0,
    retryLimit: said.retry_limit ?? 2,
    retryDelay: said.retry_delay ?? 2,
    retryBackoff: said.retry_backoff ?? true,
    runTtlSeconds: said.run_ttl_seconds ?? 60,
    expireInSeconds: said.expire_in_seconds ?? 0,
    startAfter: dateIn(said.start_after),
    keepUntil: dateIn(said.keep_until),
    softSla,
    hardSla,
  }
}

const dateIn = (value: string | undefined) => (value === undefined ? undefined : dateOf(value))

function invalid(option: string, must: string): Problem {
  return new Problem('OPTION_INVALID', { at: 'invoke', option, must })
}
