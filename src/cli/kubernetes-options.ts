import type { ResolvedSettings } from '../config/resolve-settings.ts'
import type { PodRules } from '../kernel/pod-rules.ts'
import { type KubernetesSettings, usual } from '../runners/settings.ts'

/** The Kubernetes settings. The runner has defaults for the others. */
export function kubernetesOf(resolved: ResolvedSettings): KubernetesSettings {
  const { k8sNamespace, k8sUrl, k8sImage, k8sKeySecret } = resolved.values
  return {
    allow: podRulesOf(resolved),
    ...(k8sNamespace !== undefined && { namespace: k8sNamespace }),
    ...(k8sUrl !== undefined && { serverUrl: k8sUrl }),
    ...(k8sImage !== undefined && { pawlImage: k8sImage === 'none' ? null : k8sImage }),
    ...(k8sKeySecret !== undefined && {
      keySecret: k8sKeySecret === 'none' ? null : { secret: k8sKeySecret, key: 'key' },
    }),
  }
}

/** Pawl's own image and the configured namespace are always allowed. */
export function podRulesOf({ values }: ResolvedSettings): PodRules {
  const { k8sImage = usual.pawlImage, k8sNamespace } = values
  const { k8sImages = [], k8sNamespaces = [], k8sSecrets = [], k8sServiceAccounts = [] } = values
  return {
    images: [...(k8sImage === 'none' ? [] : [k8sImage]), ...k8sImages],
    namespaces: [...(k8sNamespace === undefined ? [] : [k8sNamespace]), ...k8sNamespaces],
    secrets: k8sSecrets,
    serviceAccounts: k8sServiceAccounts,
  }
}
