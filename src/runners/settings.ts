/** Settings of the Kubernetes runner, given when the server starts. */

import { noPodRules, type PodRules } from '../kernel/pod-rules.ts'
import { checkOptions, faultOf, field, nested, number, type OptionsOf, object, orNull, text } from '../schema/check.ts'
import { serverUrl } from '../schema/fields.ts'

/** The syntax of namespaces and labels. */
const dnsLabel = field<string>({ type: 'string', pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$' }, value =>
  typeof value === 'string' && /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(value)
    ? undefined
    : 'be lower-case letters, digits and dashes, at most 63',
)

const secretKey = nested({ secret: text(253), key: text(253) }, ['secret', 'key'])

const fields = {
  /** How pods reach the server. Default: the Service of deploy/. */
  serverUrl,
  /**
   * The image of Pawl. An init container copies Node and Pawl from it, so that the images of stages need neither, and
   * workers have the version of the server. Null: nothing is copied, and every image has `pawl` in its PATH.
   */
  pawlImage: orNull(text(500)),
  /** The Secret with the API key of the workers; null if the server requires none. */
  keySecret: orNull(secretKey),
  /** The default namespace of Jobs. Default: that of the server or the kubeconfig. */
  namespace: dnsLabel,
  /** Distinguishes installations in one namespace. Default pawl. */
  instance: dnsLabel,
  /** Default: KUBECONFIG, ~/.kube/config, or the pod's own service account. */
  kubeconfig: text(4000),
  /** Timeout of one request to the API. Default 15. */
  requestSeconds: number({ from: 0.001, to: 600 }),
  /** Number of items per page of a list. Default 500. */
  pageSize: number({ from: 1, to: 10_000, whole: true }),
  /** Lists what stages may use in their pods. Default: nothing, not even an image. */
  allow: field<PodRules>({}, value => faultOf(object, value)),
}

export type KubernetesSettings = OptionsOf<typeof fields>

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

/** The settings with their defaults. A manifest without a namespace leaves it to whoever applies it. */
export type SettledKubernetes = KubernetesSettings & Required<Omit<KubernetesSettings, 'namespace' | 'kubeconfig'>>
export type ManifestSettings = Pick<
  SettledKubernetes,
  'serverUrl' | 'pawlImage' | 'keySecret' | 'instance' | 'namespace'
>

export function settleKubernetes(given: KubernetesSettings): SettledKubernetes {
  checkOptions(given, fields, 'kubernetes')
  const defined = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  return { ...usual, ...defined }
}
