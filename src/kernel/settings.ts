/** How a task is leased, retried and kept: said by the task, else by its type, else here. */
export interface TaskSettings {
  /** A lease lasts this long unless heartbeats end it earlier. */
  readonly leaseSeconds: number
  /** Two missed ones end the lease; null: only the lease counts. */
  readonly heartbeatSeconds: number | null
  /** The longest that one attempt may run; null: no limit. */
  readonly timeoutSeconds: number | null
  /** What a soft cancel leaves the handler before it becomes hard. */
  readonly graceSeconds: number
  /** Not ended so long after it was queued: expired. null: never. */
  readonly expireInSeconds: number | null
  /** An ended task and its events are kept this long, unless it is a dead letter. */
  readonly keepSeconds: number
  /** A dead letter is kept this long; null: until somebody acts on it. */
  readonly keepDeadLetterSeconds: number | null
  /** A dedupe key goes on standing for its task so long after it has ended. */
  readonly dedupeSeconds: number
  /** Not done so long after it was queued, it is late: it goes before all that are not. null: nobody said. */
  readonly softDeadlineSeconds: number | null
  /** It is too late: it goes before all that are only late. */
  readonly hardDeadlineSeconds: number | null
  readonly deadLetter: 'exhausted' | 'never'
  /** Failures a round may have, the first try included. */
  readonly attempts: number
  /** Lost leases a round may have; null: each counts as a failure, and `attempts` is the one budget. */
  readonly losses: number | null
  readonly delaySeconds: number
  readonly factor: number
  readonly maxSeconds: number
  readonly jitter: boolean
}

export type RetrySettings = Pick<
  TaskSettings,
  'attempts' | 'losses' | 'delaySeconds' | 'factor' | 'maxSeconds' | 'jitter'
>

/** Settings as people say them: only some of them, and those of retries under one word. */
export interface SettingsInput extends Partial<Omit<TaskSettings, keyof RetrySettings>> {
  /** How often a task is tried, and how far apart. */
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

/** A lease has one end: its own, or two missed heartbeats, whichever is earlier. */
export function leaseLength({ leaseSeconds, heartbeatSeconds }: TaskSettings): number {
  return heartbeatSeconds === null ? leaseSeconds : Math.min(leaseSeconds, 2 * heartbeatSeconds)
}

export function resolveSettings(type: Partial<TaskSettings> | null, task: Partial<TaskSettings> | null): TaskSettings {
  return { ...defaultSettings, ...type, ...task }
}

const ofRetries: readonly string[] = ['attempts', 'losses', 'delaySeconds', 'factor', 'maxSeconds', 'jitter']

/** Kept settings as people say them: the way back from `flattenSettings`. */
export function toSettingsInput(settings: Partial<TaskSettings>): SettingsInput {
  const entries = Object.entries(settings)
  const retry = entries.filter(([name]) => ofRetries.includes(name))
  const rest = Object.fromEntries(entries.filter(([name]) => !ofRetries.includes(name)))
  return retry.length === 0 ? rest : { ...rest, retry: Object.fromEntries(retry) }
}

const names = Object.keys(defaultSettings) as (keyof TaskSettings)[]

/** Settings as they are kept: flat, and only those that were said. */
export function flattenSettings(options: SettingsInput): Partial<TaskSettings> | undefined {
  const flat: Partial<TaskSettings> = { ...options, ...options.retry }
  const said = names.filter(name => flat[name] !== undefined)
  return said.length === 0 ? undefined : Object.fromEntries(said.map(name => [name, flat[name]]))
}
