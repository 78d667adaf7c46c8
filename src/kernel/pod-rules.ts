/** Limits what a stage may use in its pods. Producers write the stages; the operator of the server sets the rules. */
import type { KubernetesPlan, RunPlan } from './datum.ts'
import { Problem } from './problem.ts'

/** Anything that is not listed is refused. */
export interface PodRules {
  /** Exact images, or a prefix that ends in `*` after a `/`, `:` or `@`. `*` alone allows every image. */
  readonly images: readonly string[]
  /** Namespaces that a stage may name. A stage that names none runs in the server's default namespace. */
  readonly namespaces: readonly string[]
  /** Secrets that a stage may use as variables or files. */
  readonly secrets: readonly string[]
  readonly serviceAccounts: readonly string[]
}

export const noPodRules: PodRules = { images: [], namespaces: [], secrets: [], serviceAccounts: [] }

interface Demand {
  readonly option: string
  readonly value: string
  readonly rule: keyof PodRules
  /** The environment variable that holds the list. */
  readonly setting: string
}

/** Throws POD_NOT_ALLOWED for the first item that the rules do not list. `at`: the name of the stage. */
export function checkPodRules(rules: PodRules, at: string, run: RunPlan | null, runner: KubernetesPlan): void {
  for (const { option, value, rule, setting } of demandsOf(run, runner)) {
    const allowed = rules[rule]
    const isAllowed = allowed.some(each => (rule === 'images' ? fitsImage(each, value) : each === value))
    if (!isAllowed) throw new Problem('POD_NOT_ALLOWED', { at, option, value, setting, allowed })
  }
}

function demandsOf(run: RunPlan | null, runner: KubernetesPlan): Demand[] {
  const { image, namespace, serviceAccount, secretFolders = {} } = runner
  const secrets = { rule: 'secrets', setting: 'PAWL_K8S_SECRETS' } as const
  return [
    { option: 'image', value: image, rule: 'images', setting: 'PAWL_K8S_IMAGES' },
    ...demandIfSet('namespace', namespace, 'namespaces', 'PAWL_K8S_NAMESPACES'),
    ...demandIfSet('serviceAccount', serviceAccount, 'serviceAccounts', 'PAWL_K8S_SERVICE_ACCOUNTS'),
    ...Object.values(run?.secrets ?? {}).map(({ secret }) => ({ option: 'secrets', value: secret, ...secrets })),
    ...Object.values(secretFolders).map(value => ({ option: 'secretFolders', value, ...secrets })),
  ]
}

function demandIfSet(option: string, value: string | undefined, rule: keyof PodRules, setting: string): Demand[] {
  return value === undefined ? [] : [{ option, value, rule, setting }]
}

/** A `*` after a letter would also allow registries and images whose names merely start with the prefix. */
export const imagePattern = /^(\*|[^\s*]+|[^\s*]*[/:@]\*)$/

/** A tag or digest follows `:` or `@`. If a `/` follows, the prefix was the name and port of a registry. */
function fitsImage(pattern: string, image: string): boolean {
  if (!pattern.endsWith('*')) return pattern === image
  const start = pattern.slice(0, -1)
  if (!image.startsWith(start)) return false
  return start === '' || start.endsWith('/') || !image.slice(start.length).includes('/')
}
