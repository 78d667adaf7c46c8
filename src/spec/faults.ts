/** Finds every fault in a spec, each with its place, so that an author can fix all of them at once. */

import { Problem } from '../kernel/problem.ts'
import { closestWord } from '../kernel/suggest.ts'
import { type Field, type Fields, faultOf, isObject } from '../schema/check.ts'
import type { OrTrue } from './job-spec.ts'

export interface Fault {
  readonly at: string
  readonly why: string
  /** An unknown word and the known ones. A suggestion is computed only for faults that are reported. */
  readonly unknown?: { readonly word: string; readonly known: readonly string[] }
}

/** A fault as it is reported. */
export interface Issue {
  readonly at: string
  readonly why: string
  readonly didYouMean?: string
}

export function faultsIn(value: unknown, field: Field, at: string): Fault[] {
  const shape = shapeOf(field)
  if (shape !== undefined && isObject(value)) return faultsInObject(value, shape, at)
  const must = faultOf(field, value)
  if (must !== undefined) return [{ at: at || 'spec', why: `must ${must}` }]
  const items = field.items as Field | undefined
  if (items === undefined) return []
  return (value as unknown[]).flatMap((item, index) => faultsIn(item, items, `${at}[${index}]`))
}

/** The fields of the object that a field describes; undefined if it does not describe an object. */
function shapeOf(field: Field): { readonly fields: Fields; readonly required: readonly string[] } | undefined {
  const { properties, required = [] } = (field as OrTrue)['~object'] ?? field
  if (properties === undefined) return undefined
  return { fields: properties as Fields, required: required as string[] }
}

function faultsInObject(
  value: Record<string, unknown>,
  { fields, required }: NonNullable<ReturnType<typeof shapeOf>>,
  at: string,
): Fault[] {
  const place = (name: string) => (at === '' ? name : `${at}.${name}`)
  const found = Object.entries(value).flatMap(([name, inner]): Fault[] => {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (field !== undefined) return inner === undefined ? [] : faultsIn(inner, field, place(name))
    return [{ at: place(name), why: 'unknown field', unknown: { word: name, known: Object.keys(fields) } }]
  })
  const missing = required.filter(name => value[name] === undefined)
  return [...found, ...missing.map(name => ({ at: place(name), why: 'is required' }))]
}

/** More than anyone reads, and few enough for one answer. */
const mostIssues = 50

/** Beyond these, computing suggestions would cost more than it helps. */
const longestWord = 100
const mostWords = 1000

export function specInvalid(faults: readonly Fault[]): Problem {
  const issues = faults.slice(0, mostIssues).map(toIssue)
  const left = faults.length - issues.length
  return new Problem('SPEC_INVALID', { issues, ...(left > 0 && { more: left }) })
}

function toIssue({ at, why, unknown }: Fault): Issue {
  if (unknown === undefined || unknown.word.length > longestWord) return { at, why }
  const meant = closestWord(unknown.word, unknown.known.slice(0, mostWords))
  return meant === undefined ? { at, why } : { at, why: `${why}; did you mean '${meant}'?`, didYouMean: meant }
}
