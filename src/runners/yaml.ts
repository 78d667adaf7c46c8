import { stringify } from 'yaml'

/** Renders manifests as YAML documents for `kubectl apply -f -`. */
export function yamlOf(manifests: readonly object[]): string {
  return manifests.map(manifest => stringify(manifest, { lineWidth: 0, aliasDuplicateObjects: false })).join('---\n')
}
