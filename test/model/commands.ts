/** Possible actions, as plain data. They refer to tasks and leases by number, so that any list of commands is valid. */
import fc from 'fast-check'
import { type Report, reasonCodes } from '../../src/kernel/decide.ts'
import type { TaskOptions, TaskTypeOptions } from '../../src/protocol/tasks/tasks.ts'

/** Selects a task or a lease by number. `fitting`: among those for which the command is legal, if there are any. */
export interface Pick {
  readonly n: number
  readonly fitting: boolean
}

export interface NewItem {
  readonly queue: Queue
  readonly kind: number
  readonly priority: number
  readonly key: string | undefined
  readonly runInSeconds: number | undefined
}

export interface Reported extends Pick {
  readonly report: Report
  readonly ranMs: number
}

export type Command =
  | { do: 'enqueue'; items: NewItem[] }
  | { do: 'claim'; worker: number; queues: readonly Queue[]; limit: number; session: 'none' | 'next' | 'sent again' }
  | { do: 'report'; worker: number; starts: Started[]; beats: Beaten[]; settles: Reported[] }
  | { do: 'cancel'; pick: Pick; mode: 'soft' | 'hard' }
  | { do: 'resume' | 'retry'; pick: Pick }
  | { do: 'dead-letter'; pick: Pick; reasonCode: (typeof reasonCodes)[number] }
  | { do: 'redrive'; picks: Pick[] | 'all'; dryRun: boolean; payload: number | undefined; rate: number | undefined }
  | { do: 'pass'; seconds: number }
  | { do: 'rescue'; sightedSeconds: number }
  | { do: 'expire' | 'end graces' }

export interface Started extends Pick {
  readonly agoMs: number
}
export interface Beaten extends Pick {
  readonly progress: number | undefined
  readonly checkpoint: number | undefined
}

export const queues = ['plain', 'typed'] as const
export type Queue = (typeof queues)[number]
export const workers = ['ada', 'bob', 'cy'] as const

/** The settings of the second queue's type; tasks may override them. */
export const typed: TaskTypeOptions = {
  leaseSeconds: 8,
  heartbeatSeconds: null,
  timeoutSeconds: 3,
  graceSeconds: 2,
  dedupeSeconds: 6,
  retry: { attempts: 2, losses: 1, delaySeconds: 1, jitter: false },
}

export const kinds: readonly TaskOptions[] = [
  {},
  {},
  { retry: { attempts: 1, losses: 1 } },
  { retry: { attempts: 2, losses: 2, delaySeconds: 3, factor: 3, jitter: false }, deadLetter: 'never' },
  { leaseSeconds: 5, heartbeatSeconds: null, timeoutSeconds: 4 },
  { leaseSeconds: 3600, heartbeatSeconds: null, timeoutSeconds: 2, retry: { attempts: 2, maxSeconds: 0 } },
  { heartbeatSeconds: 1, timeoutSeconds: null, graceSeconds: 0 },
  { expireInSeconds: 7, graceSeconds: 5, retry: { losses: 1 } },
  { expireInSeconds: 3, deadLetter: 'never', dedupeSeconds: 0, retry: { attempts: 1, losses: 2 } },
]

const pick = fc.record({ n: fc.nat(1000), fitting: fc.boolean() })
/** Selects live leases most of the time. Otherwise few tasks would make progress. */
const leased = { n: fc.nat(1000), fitting: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, fc.constant(false)) }
const worker = fc.nat(workers.length - 1)
const maybe = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 2, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary })

const item: fc.Arbitrary<NewItem> = fc.record({
  queue: fc.constantFrom(...queues),
  kind: fc.nat(kinds.length - 1),
  priority: fc.constantFrom(0, 0, 5, -3),
  key: maybe(fc.constantFrom('a', 'b')),
  runInSeconds: maybe(fc.constantFrom(0, 2)),
})

const failure = fc.constantFrom<Report[]>(
  { outcome: 'failed' },
  { outcome: 'failed', error: { message: 'oh' } },
  { outcome: 'failed', error: { message: 'soon', retryInSeconds: 0 } },
  { outcome: 'failed', error: { message: 'never', permanent: true, step: 'exec' } },
  { outcome: 'failed', error: { message: 'away', reasonCode: 'dependency_unavailable' } },
)
const report = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Report>({ outcome: 'succeeded', output: { ok: true } }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Report[]>({ outcome: 'succeeded', partial: true }, { outcome: 'succeeded' }),
  },
  { weight: 5, arbitrary: failure },
  { weight: 1, arbitrary: fc.constantFrom<Report[]>({ outcome: 'skipped', reason: 'no' }, { outcome: 'skipped' }) },
  { weight: 2, arbitrary: fc.constant<Report>({ outcome: 'cancelled', reason: 'told to' }) },
  {
    weight: 3,
    arbitrary: fc.constantFrom<Report[]>(
      { outcome: 'released' },
      { outcome: 'released', reason: 'full' },
      { outcome: 'released', error: { message: 'not ready', retryInSeconds: 0 } },
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom<Report[]>(
      { outcome: 'dead_lettered' },
      { outcome: 'dead_lettered', error: { message: 'odd', reasonCode: 'parse_error', step: 'input' } },
    ),
  },
)
const started = fc.record({ ...leased, agoMs: fc.constantFrom(0, 0, 500, 60_000) })
const beaten = fc.record({ ...leased, progress: maybe(fc.nat(9)), checkpoint: maybe(fc.nat(9)) })
const reported = fc.record({ ...leased, report, ranMs: fc.constantFrom(0, 0, 700, 90_000) })
const some = <T>(arbitrary: fc.Arbitrary<T>, maxLength: number) => fc.array(arbitrary, { maxLength, size: 'max' })

export const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('enqueue'), items: some(item, 5) }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('claim'),
      worker,
      queues: fc.subarray([...queues], { minLength: 1 }),
      limit: fc.constantFrom(1, 2, 3, 8),
      session: fc.constantFrom('none', 'next', 'next', 'sent again'),
    }),
  },
  {
    weight: 9,
    arbitrary: fc.record({
      do: fc.constant('report'),
      worker,
      starts: some(started, 3),
      beats: some(beaten, 2),
      settles: some(reported, 2),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('cancel'), pick, mode: fc.constantFrom('soft', 'soft', 'soft', 'hard') }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('resume', 'retry'), pick }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('dead-letter'), pick, reasonCode: fc.constantFrom(...reasonCodes) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('redrive'),
      picks: fc.oneof(fc.constant('all' as const), some(pick, 3)),
      dryRun: fc.constantFrom(false, false, true),
      payload: maybe(fc.nat(99)),
      rate: maybe(fc.constantFrom(0.5, 4)),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('pass'), seconds: fc.constantFrom(1, 1, 2, 2, 5, 12, 25) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('rescue'), sightedSeconds: fc.constantFrom(1e9, 1e9, 4, 0) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('expire', 'end graces', 'end graces') }) },
)
