/** Fields for commands and files in a job spec. */
import type { KubernetesPlan } from '../kernel/datum.ts'
import {
  type Field,
  faultOf,
  field,
  isObject,
  nested,
  number,
  oneOf,
  type Static,
  text,
  type ValueOf,
} from '../schema/check.ts'
import { relativeUri } from './absolute-uris.ts'

const word = text(10_000)

function listOf<Item extends Field>(item: Item, most: number, least = 0): Field<readonly ValueOf<Item>[]> {
  const schema = { type: 'array', items: item, maxItems: most, ...(least > 0 && { minItems: least }) }
  return field(schema, value => {
    if (!Array.isArray(value)) return 'be a list'
    if (value.length > most || value.length < least) return `have from ${least} to ${most} elements`
    const at = value.findIndex(element => faultOf(item, element) !== undefined)
    return at < 0 ? undefined : `have a [${at}] that must ${faultOf(item, value[at])}`
  })
}

export function mapOf<Item extends Field>(
  names: RegExp,
  called: string,
  item: Item,
): Field<Readonly<Record<string, ValueOf<Item>>>> {
  const schema = { type: 'object', propertyNames: { pattern: names.source }, additionalProperties: item }
  return field(schema, value => {
    if (!isObject(value)) return 'be an object'
    for (const [name, inner] of Object.entries(value)) {
      if (!names.test(name)) return `not have "${name}": that is not a valid name for ${called}`
      const fault = faultOf(item, inner)
      if (fault !== undefined) return `have a "${name}" that must ${fault}`
    }
    return undefined
  })
}

export const variable = /^[A-Za-z_][A-Za-z0-9_]*$/
export const anyText = field<string>({ type: 'string' }, value =>
  typeof value === 'string' && !value.includes('\0') ? undefined : 'be a string without NUL',
)

const secretRef = nested({ secret: text(253), key: text(253), optional: oneOf([true, false]) }, ['secret', 'key'])

const runFields = {
  /** Program and arguments, run without a shell. Inputs are in `$PAWL_IN`; outputs go to `$PAWL_OUT`. */
  command: listOf(anyText, 1000, 1),
  /** Environment variables of the program. */
  env: mapOf(variable, 'a variable', anyText),
  /** Environment variables whose values come from the worker: from its environment or its folder of secrets. */
  secrets: mapOf(variable, 'a variable', secretRef),
  /** Exit codes after which the task is not retried. Default none. */
  permanentExitCodes: listOf(number({ from: 1, to: 255, whole: true }), 255),
  /** For programs with fixed paths: inputs and outputs also appear at `<mount>/<name>` and `<mount>/out`. */
  mount: field<string>({ type: 'string', pattern: '^/.' }, value =>
    typeof value === 'string' && /^\/[^/\0]/.test(value) ? undefined : 'be an absolute path',
  ),
}

const run = nested(runFields, ['command'])
/** A command that the tasks of a stage run. */
export interface RunSpec extends Static<typeof run> {}
export const runField: Field<RunSpec> = run

const dnsName = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/
export const labelWords = mapOf(/^[A-Za-z0-9]([-A-Za-z0-9._/]*[A-Za-z0-9])?$/, 'a label', anyText)
export const quantity = field<string>({ type: 'string' }, value =>
  typeof value === 'string' && /^[0-9.]+([EPTGMk]i?|m)?$/.test(value)
    ? undefined
    : 'be a quantity, such as 500m or 2Gi',
)
export const dns = field<string>({ type: 'string', pattern: dnsName.source, maxLength: 253 }, value =>
  typeof value === 'string' && value.length <= 253 && dnsName.test(value) ? undefined : 'be a valid Kubernetes name',
)
const seconds = number({ from: 1, to: 31_536_000, whole: true })

export const imagePullPolicy = oneOf(['Always', 'IfNotPresent', 'Never'])

/** Excludes the root itself and paths with `..`. */
export const absolutePath = /^(?!.*\/\.\.?(\/|$))\/[^/:\0][^:\0]*$/

const toleration = nested({
  key: text(317),
  operator: oneOf(['Equal', 'Exists']),
  value: text(63),
  effect: oneOf(['NoSchedule', 'PreferNoSchedule', 'NoExecute']),
  tolerationSeconds: number({ from: 0, to: 31_536_000, whole: true }),
})

const kubernetes = nested(
  {
    image: text(500),
    imagePullPolicy,
    resources: nested({ cpu: quantity, memory: quantity, limits: mapOf(/^[a-z0-9./-]+$/, 'a resource', quantity) }),
    nodeSelector: labelWords,
    tolerations: listOf(toleration, 100),
    serviceAccount: dns,
    secretFolders: mapOf(absolutePath, 'a folder, which begins with /', dns),
    pods: number({ from: 1, to: 1_000_000, whole: true }),
    activeDeadlineSeconds: seconds,
    ttlSeconds: number({ from: 0, to: 31_536_000, whole: true }),
    namespace: dns,
    labels: labelWords,
  },
  ['image'],
)
const withKubernetes = nested({ kubernetes }, ['kubernetes'])

/** The runner that starts the workers of a command. */
type RunnerSpec = 'local' | { readonly kubernetes: Omit<KubernetesPlan, 'kind'> }

export const runnerField = field<RunnerSpec>({ anyOf: [{ type: 'string', const: 'local' }, withKubernetes] }, value =>
  value === 'local' ? undefined : isObject(value) ? faultOf(withKubernetes, value) : 'be "local" or { kubernetes: … }',
)

/** For editors: they read the spec's own file, in which URIs may be relative. */
const uri = /^(file:\/\/\/|file:\/\/\.{1,2}(\/|$)|s3:\/\/[^/?#\s]+)/

export const folderUri = field<string>({ type: 'string', maxLength: 4000, pattern: uri.source }, value => {
  if (typeof value !== 'string' || value.length > 4000) return 'be a URI of at most 4000 characters'
  if (relativeUri.test(value)) {
    return `be absolute: ${value} is meant from the file of a spec, which \`pawl job run FILE\` knows, and nobody here`
  }
  return uri.test(value) ? undefined : 'begin with file:/// or s3://bucket, or, in a spec file, with file://./'
})

const folder = nested({
  /** Folder: `file://…` or `s3://bucket/…`. `file://./…` is relative to the spec's own file. */
  uri: folderUri,
  /** Instead of `uri`: the output files of an earlier stage. */
  stage: text(200),
  /**
   * `/`: the whole folder is one datum. `/*`: each of its entries is one. Or any glob, such as `/**\/*.csv`. Default
   * `/*`.
   */
  glob: word,
})
/** A folder of input files, divided into data. */
export interface FolderSpec extends Static<typeof folder> {}

/** Named folders, whose data are combined with each other (a cross product), or a `cross` or `union` of such inputs. */
export type InputSpec =
  | { readonly cross: readonly InputSpec[] }
  | { readonly union: readonly InputSpec[] }
  | { readonly [name: string]: FolderSpec }

const deepest = 10

export const inputField = field<InputSpec>({ $ref: '#/$defs/inputs' }, value => inputFault(value, 0))

function inputFault(value: unknown, depth: number): string | undefined {
  if (!isObject(value)) return 'be an object of folders by name, or of `cross` or `union`'
  if (depth > deepest) return `not be deeper than ${deepest}`
  const names = Object.keys(value)
  const many = names.find(name => name === 'cross' || name === 'union')
  if (many === undefined) return names.length === 0 ? 'name at least one folder' : foldersFault(value)
  if (names.length > 1) return `have no other field beside "${many}"`
  const of = value[many]
  if (!Array.isArray(of) || of.length === 0) return `have a "${many}" that must be a list of inputs`
  const at = of.findIndex(inner => inputFault(inner, depth + 1) !== undefined)
  return at < 0 ? undefined : `have a "${many}[${at}]" that must ${inputFault(of[at], depth + 1)}`
}

const folderName = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$/

const several = { type: 'array', minItems: 1, items: { $ref: '#/$defs/inputs' } }

/**
 * The schema of `inputs`. JSON Schema cannot limit its depth. Client generators support a recursive map but not a
 * recursive union. They ignore the conditions under `if`, which describe the exact shape.
 */
export const inputSchema = {
  type: 'object',
  minProperties: 1,
  propertyNames: { pattern: folderName.source, not: { const: 'out' } },
  additionalProperties: { anyOf: [folder, several] },
  if: { anyOf: [{ required: ['cross'] }, { required: ['union'] }] },
  // biome-ignore lint/suspicious/noThenProperty: A keyword of JSON Schema.
  then: { maxProperties: 1, additionalProperties: several },
  else: { additionalProperties: { ...folder, oneOf: [{ required: ['uri'] }, { required: ['stage'] }] } },
}

/** Why a folder of inputs cannot have this name. */
export function folderNameFault(name: string): string | undefined {
  if (!folderName.test(name)) return 'a name consists of letters, digits, _ . and -'
  return name === 'out' ? 'this folder is reserved for the outputs' : undefined
}

function foldersFault(folders: Record<string, unknown>): string | undefined {
  for (const [name, written] of Object.entries(folders)) {
    const unfit = folderNameFault(name)
    if (unfit !== undefined) return `not have "${name}": ${unfit}`
    const fault = faultOf(folder, written)
    if (fault !== undefined) return `have a "${name}" that must ${fault}`
    const { uri, stage } = written as Record<string, unknown>
    if ((uri === undefined) === (stage === undefined)) return `have a "${name}" that must have a "uri" or a "stage"`
  }
  return undefined
}
