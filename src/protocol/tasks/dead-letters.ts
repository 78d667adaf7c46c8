/** What may be asked of tasks that were set aside, and what is answered. */
import type { ReasonCode } from '../../kernel/decide.ts'
import type { Static } from '../../schema/check.ts'
import { at, flag, id, list, orNull, shape, text, whole, words } from '../shapes.ts'

export interface RedriveRequest {
  readonly ids?: readonly string[]
  readonly queue?: string
  readonly type?: string
  readonly reasonCode?: ReasonCode
  /** Only those whose error says this; other numbers and ids in it are taken for the same. */
  readonly message?: string
  /** Say what would be done, and do nothing. */
  readonly dryRun?: boolean
  /** Tasks per second; they are spread by their runAt. */
  readonly ratePerSecond?: number
  /** Replaces the payload of every one of them; the edit is an event. */
  readonly payload?: unknown
  /** At most so many, the oldest first. Default: all there are, up to 1,000,000. */
  readonly limit?: number
  readonly reason?: string
}

const refused = shape({ id: text, code: text, message: text })

export const redriveAnswer = shape({
  /** Under which its progress can be read; null: a dry run. */
  id: orNull(id),
  dryRun: flag,
  /** `running`: there are more than are done before the answer, and they are brought back after it. */
  state: words('running', 'done'),
  total: whole,
  /** What was done before the answer (in a dry run: would have been), the first thousand or so. */
  redriven: list(id),
  refused: list(refused),
})
export type RedriveAnswer = Static<typeof redriveAnswer>

export const redriveProgress = shape({
  id,
  state: words('running', 'done'),
  actor: text,
  reason: orNull(text),
  total: whole,
  redriven: whole,
  refused: whole,
  /** The first thousand that were refused, and why. */
  refusals: list(refused),
  createdAt: at,
  endedAt: orNull(at),
})
/** How far a redrive has come. At a rate, what was brought back may still wait for its moment. */
export type RedriveProgress = Static<typeof redriveProgress>

export interface DeadLetterQuery {
  readonly queue?: string
  readonly type?: string
  readonly reasonCode?: ReasonCode
  /** Only those whose error says this; other numbers and ids in it are taken for the same. */
  readonly message?: string
  /** At most 1,000. Default 100. */
  readonly limit?: number
  readonly cursor?: string
}
