/** What may be asked for in lists and other reads, as tables of fields. */
import { artifactLifecycle } from '../kernel/artifact.ts'
import { reasonCodes } from '../kernel/decide.ts'
import { statSeconds } from '../kernel/histogram.ts'
import { jobLifecycle } from '../kernel/job.ts'
import { statesOf } from '../kernel/lifecycle.ts'
import { stageLifecycle } from '../kernel/stage.ts'
import { taskLifecycle } from '../kernel/task.ts'
import { type Fields, field, moment, number, oneOf, text } from '../schema/check.ts'
import { isId, name, priority } from '../schema/fields.ts'
import { message, names, some } from './fields.ts'
import { jobOrders } from './jobs/jobs.ts'

const limit = number({ from: 1, to: 1000, whole: true })
export const pageFields: Fields = { limit, cursor: text(500) }
/** Of a list by name. Its cursor holds a name, each of whose characters may take eight of the cursor's. */
export const namedPageFields: Fields = { limit, cursor: text(2000) }

export const taskTypeQueryFields: Fields = { ...namedPageFields, type: name }

export const taskEventFields: Fields = { ...pageFields, pulses: oneOf([true, false]) }

export const deadLetterQueryFields: Fields = {
  ...pageFields,
  queue: name,
  type: name,
  reasonCode: oneOf(reasonCodes),
  message,
}

const created: Fields = { createdFrom: moment, createdTo: moment }
/** For whoever turns pages by their number: how many to pass over, and how many there are in all. */
const numbered: Fields = { offset: number({ from: 0, to: 1_000_000_000, whole: true }), total: oneOf([true, false]) }
const order = oneOf(['newest', 'oldest'])

/** Most tasks that are asked for by their ids at once. */
const mostIds = 1000
const ids = field({ type: 'array', items: { type: 'string', format: 'uuid' }, maxItems: mostIds }, value =>
  Array.isArray(value) && value.length <= mostIds && value.every(isId)
    ? undefined
    : `be a list of at most ${mostIds} ids`,
)

export const taskQueryFields: Fields = {
  ...deadLetterQueryFields,
  ...created,
  ...numbered,
  order,
  ids,
  state: some(statesOf(taskLifecycle)),
  jobId: name,
  stageId: name,
  correlationId: name,
}

export const logQueryFields: Fields = { ...pageFields, epoch: number({ from: 1, to: 2 ** 31 - 1, whole: true }) }

export const artifactQueryFields: Fields = { ...pageFields, state: some(statesOf(artifactLifecycle)) }
export const stageFilesFields: Fields = {
  ...pageFields,
  prefix: field({ type: 'string', pattern: '/$' }, value =>
    typeof value === 'string' && value.endsWith('/') && !value.includes('\0') ? undefined : 'be a folder, ending in /',
  ),
}
export const lineageFields: Fields = { uri: text(8000) }

const { jobId: _job, stageId: _stage, ...tasksOf } = taskQueryFields
export const tasksOfFields: Fields = tasksOf

export const jobQueryFields: Fields = {
  ...pageFields,
  ...created,
  ...numbered,
  order: oneOf(jobOrders),
  name,
  search: text(200),
  state: some(statesOf(jobLifecycle)),
  correlationId: name,
  priorityFrom: priority,
  priorityTo: priority,
}

export const stageQueryFields: Fields = {
  ...pageFields,
  ...numbered,
  state: some(statesOf(stageLifecycle)),
  jobId: name,
  queue: name,
}

export const workerQueryFields: Fields = { ...namedPageFields, withinSeconds: number({ from: 1, to: 86_400 }) }

export const statsQueryFields: Fields = {
  sinceSeconds: number({ from: 60, to: statSeconds }),
  bucketSeconds: number({ from: 60, to: statSeconds, whole: true }),
  type: name,
  limit: number({ from: 1, to: 1000, whole: true }),
}

/** Most events before the end of the feed that are asked for at once. */
export const mostLatest = 1000

export const feedFields: Fields = {
  cursor: text(500),
  latest: number({ from: 0, to: mostLatest, whole: true }),
  limit: number({ from: 1, to: 10_000, whole: true }),
  types: names(100),
  jobId: name,
  since: moment,
  until: moment,
}
