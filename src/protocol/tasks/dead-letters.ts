/** Shapes of requests about dead letters, and of their answers. */
import { reasonCodes } from '../../kernel/decide.ts'
import { type Fields, faultOf, field, listOf, number, type OptionsOf, oneOf, type Static } from '../../schema/check.ts'
import { name, reason } from '../../schema/fields.ts'
import { type PageQuery, pageFields } from '../call-options.ts'
import { anything, at, flag, id, list, orNull, shape, text, whole, words } from '../shapes.ts'

/** Text of an error message, which may be empty. */
const message = field<string>({ type: 'string', maxLength: 10_000 }, value =>
  value === '' ? undefined : faultOf(reason, value),
)

/** Fields of queries that can select dead letters. */
const deadLetterFilters = {
  queue: name,
  type: name,
  /** Only dead letters with this reason. */
  reasonCode: oneOf(reasonCodes),
  /** Only tasks with this error message. Numbers and ids in it may differ. */
  message,
} satisfies Fields
export const deadLetterQueryFields = { ...pageFields, ...deadLetterFilters }
/** Query for dead letters. */
export interface DeadLetterQuery extends PageQuery, OptionsOf<typeof deadLetterFilters> {}

/** Maximum number of dead letters of one redrive. */
export const mostRedriven = 1_000_000

const taskId = field<string>({ type: 'string', format: 'uuid' }, () => undefined)
export const redriveFields = {
  ids: listOf<string>(taskId, 10_000),
  queue: name,
  type: name,
  reasonCode: oneOf(reasonCodes),
  /** Only tasks with this error message. Numbers and ids in it may differ. */
  message,
  /** Report what would be done, without doing it. */
  dryRun: flag,
  /** Tasks per second. Their `runAt` is spread accordingly. */
  ratePerSecond: number({ from: 0.001, to: 1_000_000 }),
  /** Replaces the payload of every task. The change is recorded in an event. */
  payload: anything,
  /** Maximum number of tasks, oldest first. Default: all, up to 1,000,000. */
  limit: number({ from: 1, to: mostRedriven, whole: true }),
  reason,
} satisfies Fields
/** Selects dead letters to redrive. */
export interface RedriveRequest extends OptionsOf<typeof redriveFields> {}

const refused = shape({ id: text, code: text, message: text })

export const redriveAnswer = shape({
  /** Id for reading the progress; null: a dry run. */
  id: orNull(id),
  dryRun: flag,
  /** `running`: the rest is redriven after the answer. */
  state: words('running', 'done'),
  total: whole,
  /** The first tasks, about a thousand, that were redriven before the answer, or would be without `dryRun`. */
  redriven: list(id),
  refused: list(refused),
})
/** The result of a redrive, or its first part. */
export interface RedriveAnswer extends Static<typeof redriveAnswer> {}

export const redriveProgress = shape({
  id,
  state: words('running', 'done'),
  actor: text,
  reason: orNull(text),
  total: whole,
  redriven: whole,
  refused: whole,
  /** The first thousand refused tasks, with reasons. */
  refusals: list(refused),
  createdAt: at,
  endedAt: orNull(at),
})
/** Progress of a redrive. With a rate, redriven tasks may still be waiting for their `runAt`. */
export interface RedriveProgress extends Static<typeof redriveProgress> {}
