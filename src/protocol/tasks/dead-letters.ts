/** What may be asked of tasks that were set aside, and what is answered. */
import type { ReasonCode } from '../../kernel/decide.ts'
import type { Refused } from '../../kernel/problem.ts'

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

export interface RedriveAnswer {
  /** Under which its progress can be read; null: a dry run. */
  readonly id: string | null
  readonly dryRun: boolean
  /** `running`: there are more than are done before the answer, and they are brought back after it. */
  readonly state: 'running' | 'done'
  readonly total: number
  /** What was done before the answer (in a dry run: would have been), the first thousand or so. */
  readonly redriven: readonly string[]
  readonly refused: readonly Refused[]
}

/** How far a redrive has come. At a rate, what was brought back may still wait for its moment. */
export interface RedriveProgress {
  readonly id: string
  readonly state: 'running' | 'done'
  readonly actor: string
  readonly reason: string | null
  readonly total: number
  readonly redriven: number
  readonly refused: number
  /** The first thousand that were refused, and why. */
  readonly refusals: readonly Refused[]
  readonly createdAt: string
  readonly endedAt: string | null
}

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
