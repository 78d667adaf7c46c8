import type { Settled } from '../config/resolve.ts'
import type { KubernetesSettings } from '../runners/settings.ts'

/** What the settings say of Kubernetes; the rest is the runner's own default. */
export function kubernetesOf({ values }: Settled): KubernetesSettings {
  const { k8sNamespace, k8sUrl, k8sImage, k8sKeySecret } = values
  return {
    ...(k8sNamespace !== undefined && { namespace: k8sNamespace }),
    ...(k8sUrl !== undefined && { serverUrl: k8sUrl }),
    ...(k8sImage !== undefined && { pawlImage: k8sImage === 'none' ? null : k8sImage }),
    ...(k8sKeySecret !== undefined && {
      keySecret: k8sKeySecret === 'none' ? null : { secret: k8sKeySecret, key: 'key' },
    }),
  }
}
