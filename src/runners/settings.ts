/** What the Kubernetes runner must be told, once, where the server starts. */

import { noPodRules, type PodRules } from '../kernel/pod-rules.ts'
import { checkOptions, type Fields, faultOf, field, nested, number, object, text } from '../schema/check.ts'
import { serverUrl } from '../schema/fields.ts'

export interface KubernetesSettings {
  /** Where pods find the server. Default: the Service of deploy/. */
  readonly serverUrl?: string
  /**
   * The image of Pawl. An init container copies Node and Pawl out of it, so that a stage's image needs neither, and its
   * workers are of the server's version. Null: nothing is copied, and every image has a `pawl` on its path.
   */
  readonly pawlImage?: string | null
  /** Where the key of the workers is kept; null: the server asks for none. */
  readonly keySecret?: { readonly secret: string; readonly key: string } | null
  /** Where Jobs are made unless their stage says otherwise. Default: the server's own, or that of the kubeconfig. */
  readonly namespace?: string
  /** Tells installations in one namespace apart. Default pawl. */
  readonly instance?: string
  /** Default: KUBECONFIG, ~/.kube/config, or the pod's own service account. */
  readonly kubeconfig?: string
  /** How long one request to the API may take. Default 15. */
  readonly requestSeconds?: number
  /** How much is asked for at once in a list. Default 500. */
  readonly pageSize?: number
  /** Lists what stages may use in their pods. Default: nothing, not even an image. */
  readonly allow?: PodRules
}

export interface ManifestSettings {
  readonly serverUrl: string
  readonly pawlImage: string | null
  readonly keySecret: { readonly secret: string; readonly key: string } | null
  readonly instance: string
  /** That of stages which name none; undefined: whoever applies the manifest says it. */
  readonly namespace?: string
}

/** What deploy/ names so; a test holds that they agree. */
export const usual = {
  serverUrl: 'http://pawl.pawl:7295',
  pawlImage: 'pawl:0.1.0',
  keySecret: { secret: 'pawl-worker-key', key: 'key' },
  instance: 'pawl',
  requestSeconds: 15,
  pageSize: 500,
  allow: noPodRules,
} as const

/** What names of namespaces, and labels, may be made of. */
const dnsLabel = field({ type: 'string', pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$' }, value =>
  typeof value === 'string' && /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(value)
    ? undefined
    : 'be lower-case letters, digits and dashes, at most 63',
)

const fields = {
  serverUrl,
  pawlImage: field({}, value => (value === null ? undefined : faultOf(text(500), value))),
  keySecret: field({}, value => {
    const secret = nested({ secret: text(253), key: text(253) }, ['secret', 'key'])
    return value === null ? undefined : faultOf(secret, value)
  }),
  namespace: dnsLabel,
  instance: dnsLabel,
  kubeconfig: text(4000),
  requestSeconds: number({ from: 0.001, to: 600 }),
  pageSize: number({ from: 1, to: 10_000, whole: true }),
  allow: object,
} satisfies Fields

export type SettledKubernetes = KubernetesSettings &
  ManifestSettings & { readonly requestSeconds: number; readonly pageSize: number; readonly allow: PodRules }

export function settleKubernetes(given: KubernetesSettings): SettledKubernetes {
  checkOptions(given, fields, 'kubernetes')
  const said = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  return { ...usual, ...said }
}
