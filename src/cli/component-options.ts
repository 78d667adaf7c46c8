/** Options of the engine, the runners and the workers, made from the settings. */
import { resolve } from 'node:path'
import type { ResolvedSettings } from '../config/resolve-settings.ts'
import type { PodRules } from '../kernel/pod-rules.ts'
import { withoutUndefined } from '../kernel/without-undefined.ts'
import { type KubernetesSettings, usual } from '../runners/settings.ts'

/** The files that jobs may use; undefined means any. */
export interface FileLimits {
  readonly roots: readonly string[] | undefined
  readonly buckets: readonly string[] | undefined
}

/**
 * `defaultRoots` apply if no setting lists folders. If folders are limited and no bucket is listed, no bucket is
 * allowed.
 */
export function fileLimitsOf({ values }: ResolvedSettings, defaultRoots?: readonly string[]): FileLimits {
  const { fileRoots, s3Buckets } = values
  const roots = withoutNone(fileRoots)?.map(root => resolve(root)) ?? defaultRoots
  return { roots, buckets: withoutNone(s3Buckets) ?? (roots === undefined ? undefined : []) }
}

const withoutNone = (words: readonly string[] | undefined) => words?.filter(word => word !== 'none')

/** The limits as flags of `pawl worker`. */
export function limitFlags({ roots, buckets }: FileLimits): string[] {
  const flags = (name: string, words: readonly string[] | undefined) =>
    words === undefined ? [] : (words.length === 0 ? ['none'] : words).flatMap(word => [name, word])
  return [...flags('--file-roots', roots), ...flags('--s3-buckets', buckets)]
}

/** The Kubernetes settings. The runner has defaults for the others. */
export function kubernetesOf(resolved: ResolvedSettings): KubernetesSettings {
  const { k8sNamespace, k8sUrl, k8sImage, k8sKeySecret } = resolved.values
  return {
    allow: podRulesOf(resolved),
    ...withoutUndefined({ namespace: k8sNamespace, serverUrl: k8sUrl }),
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
