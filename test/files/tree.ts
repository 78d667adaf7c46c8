/** A store that is only a list of paths, for tests of code that works on listings. */
import type { Entry, ListAsk } from '../../src/files/file-store.ts'
import { type Datum, datumsOf, type Lister, type ListerOf } from '../../src/files/inputs.ts'
import { byBytes, pathIn } from '../../src/files/uri.ts'
import type { FilesInput, InputPlan, Position } from '../../src/kernel/datum.ts'

export interface Tree extends Lister {
  paths: readonly string[]
  /** The folders that were listed. */
  readonly asked: string[]
}

export function treeOf(paths: readonly string[], base = 's3://tree/'): Tree {
  const tree: Tree = {
    base,
    paths,
    asked: [],
    async *list(uri: string, { after = '', deep = false }: ListAsk = {}) {
      const folder = pathIn(base, uri)!
      tree.asked.push(folder)
      const inside = tree.paths.filter(path => path.startsWith(folder)).map(path => path.slice(folder.length))
      const found = deep ? inside : [...new Set(inside.map(path => path.replace(/\/.*/s, '/')))]
      const entries = found.filter(path => byBytes(path, after) > 0).sort(byBytes)
      for (let at = 0; at < entries.length; at += 3) yield entries.slice(at, at + 3).map(entryOf)
    },
  }
  return tree
}

function entryOf(path: string): Entry {
  return path.endsWith('/') ? { path } : { path, size: path.length, version: path }
}

export function files(name: string, glob: string): FilesInput {
  return { kind: 'files', name, glob, from: { uri: 's3://tree/' } }
}

export async function all(plan: InputPlan, listerOf: ListerOf, after?: Position): Promise<Datum[]> {
  const datums: Datum[] = []
  for await (const datum of datumsOf(plan, listerOf, after)) datums.push(datum)
  return datums
}

/** The inputs of each datum, as `name:path`. */
export function shown(datums: readonly Datum[]): string[] {
  return datums.map(({ inputs }) => inputs.map(({ name, path }) => `${name}:${path}`).join(' '))
}

export async function pathsFound(glob: string, tree: Tree, after?: Position): Promise<string[]> {
  return (await all(files('in', glob), () => tree, after)).map(({ inputs }) => inputs[0]!.path)
}
