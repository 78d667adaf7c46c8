/** Settings of the Kubernetes runner, given when the server starts. */

import { noPodRules, type PodRules } from '../kernel/pod-rules.ts'
import { checkOptions, type Fields, faultOf, field, nested, number, object, text } from '../schema/check.ts'
import { serverUrl } from '../schema/fields.ts'

export interface KubernetesSettings {
  /** How pods reach the server. Default: the Service of deploy/. */
  readonly serverUrl?: string
  /**
   * The image of Pawl. An init container copies Node and Pawl from it, so that the images of stages need neither, and
   * workers have the version of the server. Null: nothing is copied, and every image has `pawl` in its PATH.
   */
  readonly pawlImage?: string | null
  /** The Secret with the API key of the workers; null if the server requires none. */
  readonly keySecret?: { readonly secret: string; readonly key: string } | null
  /** The default namespace of Jobs. Default: that of the server or the kubeconfig. */
  readonly namespace?: string
  /** Distinguishes installations in one namespace. Default pawl. */
  readonly instance?: string
  /** Default: KUBECONFIG, ~/.kube/config, or the pod's own service account. */
  readonly kubeconfig?: string
  /** Timeout of one request to the API. Default 15. */
  readonly requestSeconds?: number
  /** Number of items per page of a list. Default 500. */
  readonly pageSize?: number
  /** Lists what stages may use in their pods. Default: nothing, not even an image. */
  readonly allow?: PodRules
}

export interface ManifestSettings {
  readonly serverUrl: string
  readonly pawlImage: string | null
  readonly keySecret: { readonly secret: string; readonly key: string } | null
  readonly instance: string
  /** Namespace of stages that name none; undefined leaves it to whoever applies the manifest. */
  readonly namespace?: string
}

/** The names used in deploy/. A test checks that they agree. */
export const usual = {
  serverUrl: 'http://pawl.pawl:7295',
  pawlImage: 'pawl:0.1.0',
  keySecret: { secret: 'pawl-worker-key', key: 'key' },
  instance: 'pawl',
  requestSeconds: 15,
  pageSize: 500,
  allow: noPodRules,
} as const

/** The syntax of namespaces and labels. */
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
  const defined = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  return { ...usual, ...defined }
}
