/** How a task is leased, retried and kept: set by the task, else by its type, else by the defaults below. */
export interface TaskSettings {
  /** How long a lease lasts, unless missed heartbeats end it earlier. */
  readonly leaseSeconds: number
  /** Two missed heartbeats end the lease; null: only `leaseSeconds` counts. */
  readonly heartbeatSeconds: number | null
  /** Maximum run time of one attempt; null: no limit. */
  readonly timeoutSeconds: number | null
  /** Time that a handler has after a soft cancel before it becomes a hard one. */
  readonly graceSeconds: number
  /** The task expires if it has not ended this long after it was queued; null: never. */
  readonly expireInSeconds: number | null
  /** How long an ended task and its events are kept, unless it is a dead letter. */
  readonly keepSeconds: number
  /** How long a dead letter is kept; null: until an operator acts on it. */
  readonly keepDeadLetterSeconds: number | null
  /** How long the dedupe key stays reserved after the task has ended. */
  readonly dedupeSeconds: number
  /** Time from queueing until the task is late. Late tasks run before all others. null: no deadline. */
  readonly softDeadlineSeconds: number | null
  /** Time from queueing until the task is overdue. Overdue tasks run before late ones. */
  readonly hardDeadlineSeconds: number | null
  /** `exhausted`: a task without attempts left moves to the dead-letter queue. `never`: it fails. */
  readonly deadLetter: 'exhausted' | 'never'
  /** Failures per round before the task gives up, the first attempt included. */
  readonly attempts: number
  /** Lost leases per round; null: each loss counts as a failure, and `attempts` is the only budget. */
  readonly losses: number | null
  /** The wait before the first retry. */
  readonly delaySeconds: number
  /** Multiplies the wait before each further retry. */
  readonly factor: number
  /** The longest wait before a retry. */
  readonly maxSeconds: number
  /** Shortens each wait at random by up to half, so that tasks that failed together do not retry together. */
  readonly jitter: boolean
}

const retryNames = ['attempts', 'losses', 'delaySeconds', 'factor', 'maxSeconds', 'jitter'] as const
export type RetrySettings = Pick<TaskSettings, (typeof retryNames)[number]>

/** Task settings as a caller writes them: any subset, with the retry settings grouped under `retry`. */
export interface SettingsInput extends Partial<Omit<TaskSettings, keyof RetrySettings>> {
  /** How often a task is retried, and at which intervals. */
  readonly retry?: Partial<RetrySettings>
}

export const defaultSettings: TaskSettings = Object.freeze({
  leaseSeconds: 60,
  heartbeatSeconds: 10,
  timeoutSeconds: null,
  graceSeconds: 30,
  expireInSeconds: null,
  keepSeconds: 14 * 86_400,
  keepDeadLetterSeconds: null,
  dedupeSeconds: 0,
  softDeadlineSeconds: null,
  hardDeadlineSeconds: null,
  deadLetter: 'exhausted',
  attempts: 3,
  losses: 3,
  delaySeconds: 0.5,
  factor: 2,
  maxSeconds: 60,
  jitter: true,
})

/** The effective lease: `leaseSeconds` or two missed heartbeats, whichever is shorter. */
export function leaseLength({ leaseSeconds, heartbeatSeconds }: TaskSettings): number {
  return heartbeatSeconds === null ? leaseSeconds : Math.min(leaseSeconds, 2 * heartbeatSeconds)
}

export function resolveSettings(type: Partial<TaskSettings> | null, task: Partial<TaskSettings> | null): TaskSettings {
  return { ...defaultSettings, ...type, ...task }
}

/** Converts stored settings back to their input form; the inverse of `flattenSettings`. */
export function toSettingsInput(settings: Partial<TaskSettings>): SettingsInput {
  const entries = Object.entries(settings)
  const isRetry = ([name]: [string, unknown]) => retryNames.some(other => other === name)
  const retry = entries.filter(isRetry)
  const rest = Object.fromEntries(entries.filter(entry => !isRetry(entry)))
  return retry.length === 0 ? rest : { ...rest, retry: Object.fromEntries(retry) }
}

const names = Object.keys(defaultSettings) as (keyof TaskSettings)[]

/** Converts settings to their stored form: flat, and only those that were given. */
export function flattenSettings(options: SettingsInput): Partial<TaskSettings> | undefined {
  const flat: Partial<TaskSettings> = { ...options, ...options.retry }
  const present = names.filter(name => flat[name] !== undefined)
  return present.length === 0 ? undefined : Object.fromEntries(present.map(name => [name, flat[name]]))
}
