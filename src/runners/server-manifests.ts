import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'

/** What deploy/base puts into a cluster, as it is written: what `kubectl kustomize deploy/base` would make of it. */
export function serverManifests(): { readonly text: string; readonly items: readonly object[] } {
  const folder = findDeploy(import.meta.dirname)
  const { resources } = parse(readFileSync(join(folder, 'kustomization.yaml'), 'utf8')) as { resources: string[] }
  const text = resources.map(name => readFileSync(join(folder, name), 'utf8')).join('---\n')
  return { text, items: parseAllDocuments(text).map(document => document.toJS() as object) }
}

/** In the package as in a clone it lies beside the compiled code, some folders up. */
function findDeploy(from: string): string {
  const folder = join(from, 'deploy/base')
  if (existsSync(join(folder, 'kustomization.yaml'))) return folder
  if (dirname(from) === from) throw new Error('deploy/base is missing from the package')
  return findDeploy(dirname(from))
}
