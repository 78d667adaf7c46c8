/** The fields of a pipeline spec, and a check that finds all of its faults. */
import { anything, faultOf, field, isObject, nested, number, oneOf, orNull, text } from '../schema/check.ts'
import { year } from '../schema/fields.ts'
import { relativeUri } from './absolute-uris.ts'
import { type Fault, faultsIn } from './faults.ts'
import * as files from './file-fields.ts'
import { listOf } from './job-spec.ts'
import type { PipelineInput } from './pipeline.ts'

const cpu = field({}, value => {
  if (typeof value === 'string') return faultOf(files.quantity, value)
  return faultOf(number({ from: 0.001, to: 100_000 }), value)
})

/** Long enough for a job, and short enough for its deadline. */
const timeout = field({}, value => {
  const seconds = typeof value === 'string' ? readDuration(value) : undefined
  if (seconds === undefined) return 'be a time, such as "5m" or "1h30m"'
  return seconds <= 0 || seconds > 10 * year ? 'be longer than zero, and at most ten years' : undefined
})

/** Accepts URIs relative to the spec's file: they are made absolute later. */
const uri = field({}, value =>
  typeof value === 'string' && relativeUri.test(value) ? undefined : faultOf(files.folderUri, value),
)

const repo = field({}, value => {
  if (typeof value !== 'string') return 'be a string'
  const unfit = files.folderNameFault(value)
  return unfit === undefined ? undefined : `have a different name: ${unfit}`
})

const atom = nested({ URI: uri, repo, glob: oneOf(['/', '/*']) }, ['URI', 'repo', 'glob'])

const secret = nested(
  { name: text(253), key: text(253), env_var: text(253), optional: oneOf([true, false]), mount_path: text(4000) },
  ['name'],
)

/** Newer clients send fields with null for everything that is not set. */
const unsaid = field({ type: 'null' }, value => (value === null ? undefined : 'be null: it is not supported here'))

const pipelineField = nested(
  {
    pipeline: nested({ name: text(200) }, ['name']),
    transform: nested(
      {
        cmd: listOf(files.anyText, 1000),
        image: text(500),
        image_pull_policy: orNull(files.imagePullPolicy),
        env: files.mapOf(files.variable, 'a variable', files.anyText),
        secrets: listOf(secret, 1000),
        service_account: orNull(files.dns),
      },
      ['cmd', 'image'],
    ),
    parallelism_spec: nested({ constant: number({ from: 1, to: 1_000_000, whole: true }) }, ['constant']),
    resource_requests: nested({ memory: files.quantity, cpu }),
    datum_tries: orNull(number({ from: 1, to: 1000, whole: true })),
    worker_failure_policy: unsaid,
    job_timeout: orNull(timeout),
    node_selector: files.labelWords,
    // Checked by inputFaults, whose messages are more precise.
    input: anything,
    egress: nested({ URI: uri }, ['URI']),
  },
  ['pipeline', 'transform', 'input', 'egress'],
)

export function faultsInPipeline(spec: Record<string, unknown>): Fault[] {
  const { transform, input } = spec
  return [
    ...faultsIn(spec, pipelineField, ''),
    ...(isObject(transform) ? transformFaults(transform) : []),
    ...(input === undefined ? [] : inputFaults(input, 'input', 0)),
  ]
}

function transformFaults({ cmd, secrets }: Record<string, unknown>): Fault[] {
  const empty = Array.isArray(cmd) && cmd.length === 0 ? [{ at: 'transform.cmd', why: 'must name a program' }] : []
  if (!Array.isArray(secrets)) return empty
  return [...empty, ...secrets.flatMap((one, index) => secretFaults(one, `transform.secrets[${index}]`))]
}

/** Either one key becomes an environment variable, or the whole secret becomes files in a folder. */
function secretFaults(secret: unknown, at: string): Fault[] {
  if (!isObject(secret)) return []
  const { name: _, key, env_var, mount_path, ...rest } = secret
  if (mount_path !== undefined) {
    const [beside] = Object.keys({
      ...(key !== undefined && { key }),
      ...(env_var !== undefined && { env_var }),
      ...rest,
    })
    if (beside !== undefined) return [{ at: `${at}.${beside}`, why: 'cannot be combined with mount_path' }]
    const isPath = typeof mount_path !== 'string' || files.absolutePath.test(mount_path)
    return isPath ? [] : [{ at: `${at}.mount_path`, why: 'must be an absolute path' }]
  }
  const missing = Object.entries({ key, env_var }).filter(([, value]) => value === undefined)
  const wrong = typeof env_var === 'string' && !files.variable.test(env_var)
  return [
    ...missing.map(([field]) => ({ at: `${at}.${field}`, why: 'is required' })),
    ...(wrong ? [{ at: `${at}.env_var`, why: 'must be the name of an environment variable' }] : []),
  ]
}

const kinds = ['atom', 'pfs', 'cross', 'union'] satisfies (keyof PipelineInput)[]
const deepest = 10

function inputFaults(input: unknown, at: string, depth: number): Fault[] {
  if (!isObject(input)) return [{ at, why: `must be an object with one of ${kinds.join(', ')}` }]
  if (depth > deepest) return [{ at, why: `must not be deeper than ${deepest}` }]
  const names = Object.keys(input)
  const unknown = names.filter(name => !kinds.some(kind => kind === name))
  if (unknown.length > 0) {
    return unknown.map(word => ({
      at: `${at}.${word}`,
      why: 'unknown kind of input',
      unknown: { word, known: kinds },
    }))
  }
  const [kind] = names
  if (kind === undefined || names.length > 1) return [{ at, why: `must have one of ${kinds.join(', ')}` }]
  const inner = input[kind]
  const place = `${at}.${kind}`
  if (kind === 'atom' || kind === 'pfs') return faultsIn(inner, atom, place)
  if (!Array.isArray(inner) || inner.length === 0) return [{ at: place, why: 'must be a list of inputs' }]
  return inner.flatMap((one, index) => inputFaults(one, `${place}[${index}]`, depth + 1))
}

/** Parses durations such as `5m`, `1h30m`, `90 seconds` or `1h 30min`. */

const second = 1
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** The units that Falconeri accepts. */
const units: Readonly<Record<string, number>> = {
  ...named(0.001 * second, 'ms', 'msec', 'millis'),
  ...named(second, 's', 'sec', 'secs', 'second', 'seconds'),
  ...named(minute, 'm', 'min', 'mins', 'minute', 'minutes'),
  ...named(hour, 'h', 'hr', 'hrs', 'hour', 'hours'),
  ...named(day, 'd', 'day', 'days'),
  ...named(7 * day, 'w', 'wk', 'wks', 'week', 'weeks'),
  ...named(30.44 * day, 'M', 'month', 'months'),
  ...named(365.25 * day, 'y', 'yr', 'yrs', 'year', 'years'),
}

function named(seconds: number, ...names: readonly string[]) {
  return Object.fromEntries(names.map(name => [name, seconds]))
}

/** The duration in seconds; undefined: the text is not a duration. */
export function readDuration(text: string): number | undefined {
  const parts = [...text.matchAll(/\s*(\d+)\s*([a-zA-Z]+)\s*/gy)]
  const isWhole = parts.length > 0 && parts.map(([part]) => part).join('') === text
  if (!isWhole || parts.some(([, , unit]) => units[unit!] === undefined)) return undefined
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * units[unit!]!, 0)
}
