import { stringify } from 'yaml'

/** Manifests as `kubectl apply -f -` takes them: one document after the other. */
export function yamlOf(manifests: readonly object[]): string {
  return manifests.map(manifest => stringify(manifest, { lineWidth: 0, aliasDuplicateObjects: false })).join('---\n')
}
