/**
 * `file://./texts` in a spec means: from the file that the spec is written in. Only whoever reads that file knows where
 * it lies; so it makes the URIs absolute, and the engine takes no others.
 */
import { isObject } from '../schema/check.ts'
import type { JobSpec } from './job-spec.ts'

/** `file://.`, `file://./…`, `file://..` or `file://../…`. */
export const relativeUri = /^file:\/\/(\.{1,2}(?:\/.*)?)$/s

/**
 * The same spec with every URI of a folder made absolute. `folder` is a URI that ends in `/`. The spec need not have
 * been checked: what is not where a URI belongs is left as it is.
 */
export function withAbsoluteUris<Spec extends JobSpec>(spec: Spec, folder: string): Spec {
  if (!isObject(spec) || !Array.isArray(spec.stages)) return spec
  return { ...spec, stages: spec.stages.map(stage => stageFrom(stage, folder)) }
}

/** One URI; what is absolute stays as it is. */
export function absoluteUri(uri: string, folder: string): string {
  const [, path] = relativeUri.exec(uri) ?? []
  if (path === undefined) return uri
  const parts = folder.slice('file:///'.length).split('/').slice(0, -1)
  const [last, ...before] = path.split('/').toReversed()
  for (const part of before.toReversed()) step(parts, part)
  // What a path ends in is a name, or nothing where it ends in `/`; but a dot is the folder itself.
  const name = last === '.' || last === '..' ? '' : last!
  if (name !== last) step(parts, last!)
  return `file:///${parts.map(part => `${part}/`).join('')}${name}`
}

function step(parts: string[], part: string): void {
  if (part === '..') parts.pop()
  else if (part !== '.') parts.push(part)
}

function stageFrom(stage: unknown, folder: string): unknown {
  if (!isObject(stage)) return stage
  const { outputs, inputs } = stage
  return {
    ...stage,
    ...(typeof outputs === 'string' && { outputs: absoluteUri(outputs, folder) }),
    ...(inputs !== undefined && { inputs: inputsFrom(inputs, folder) }),
  }
}

function inputsFrom(inputs: unknown, folder: string): unknown {
  if (!isObject(inputs)) return inputs
  const moved = Object.entries(inputs).map(([name, inner]) => [name, inputFrom(inner, folder)])
  return Object.fromEntries(moved)
}

/** A list is what `cross` or `union` is of; an object is a folder. */
function inputFrom(inner: unknown, folder: string): unknown {
  if (Array.isArray(inner)) return inner.map(input => inputsFrom(input, folder))
  if (!isObject(inner) || typeof inner.uri !== 'string') return inner
  return { ...inner, uri: absoluteUri(inner.uri, folder) }
}
