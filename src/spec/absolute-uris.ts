/**
 * `file://./texts` in a spec is relative to the spec's own file. Only the reader of that file knows its location, so the
 * reader makes the URIs absolute. The engine accepts only absolute URIs.
 */
import { isObject } from '../schema/check.ts'
import type { JobSpec } from './job-spec.ts'

/** `file://.`, `file://./…`, `file://..` or `file://../…`. */
export const relativeUri = /^file:\/\/(\.{1,2}(?:\/.*)?)$/s

/**
 * Returns the spec with every relative folder URI made absolute. `folder` is a URI that ends in `/`. The spec may be
 * unchecked: values of unexpected types stay as they are.
 */
export function withAbsoluteUris<Spec extends JobSpec>(spec: Spec, folder: string): Spec {
  if (!isObject(spec) || !Array.isArray(spec.stages)) return spec
  return { ...spec, stages: spec.stages.map(stage => stageFrom(stage, folder)) }
}

/** Makes one URI absolute, unless it already is. */
export function absoluteUri(uri: string, folder: string): string {
  const [, path] = relativeUri.exec(uri) ?? []
  if (path === undefined) return uri
  const parts = folder.slice('file:///'.length).split('/').slice(0, -1)
  const [last, ...before] = path.split('/').toReversed()
  for (const part of before.toReversed()) step(parts, part)
  // A path ends in a name, or in nothing after a final `/`. A final dot means the folder itself.
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

/** A list holds the inputs of a `cross` or `union`; an object is a folder. */
function inputFrom(inner: unknown, folder: string): unknown {
  if (Array.isArray(inner)) return inner.map(input => inputsFrom(input, folder))
  if (!isObject(inner) || typeof inner.uri !== 'string') return inner
  return { ...inner, uri: absoluteUri(inner.uri, folder) }
}
