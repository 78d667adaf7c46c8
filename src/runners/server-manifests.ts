import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'

/** The manifests of deploy/, unchanged, as `kubectl kustomize deploy` would render them. */
export function serverManifests(): { readonly text: string; readonly items: readonly object[] } {
  const text = resourcesOf(findDeploy(import.meta.dirname))
    .map(file => readFileSync(file, 'utf8'))
    .join('---\n')
  return { text, items: parseAllDocuments(text).map(document => document.toJS() as object) }
}

/** The files of a kustomization. A resource may be a folder with a kustomization of its own. */
function resourcesOf(folder: string): string[] {
  const { resources } = parse(readFileSync(join(folder, 'kustomization.yaml'), 'utf8')) as { resources: string[] }
  return resources.flatMap(name => (name.endsWith('.yaml') ? [join(folder, name)] : resourcesOf(join(folder, name))))
}

/** In the package and in a clone, deploy/ is next to the compiled code, some folders up. */
function findDeploy(from: string): string {
  const folder = join(from, 'deploy')
  if (existsSync(join(folder, 'kustomization.yaml'))) return folder
  if (dirname(from) === from) throw new Error('deploy is missing from the package')
  return findDeploy(dirname(from))
}
