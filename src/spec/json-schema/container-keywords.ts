/** The keywords for objects and for lists. */

import { canonical } from './assertions.ts'
import {
  type Apply,
  type Evaluated,
  type Keyword,
  matcherOf,
  note,
  noteSteps,
  quietly,
  type Run,
  refuse,
} from './run.ts'
import { isObject, isTexts, type Schema, type SchemaObject } from './schema.ts'

type Rest = [evaluated: Evaluated | undefined, apply: Apply]
type Values = Readonly<Record<string, unknown>>
type Schemas = Readonly<Record<string, Schema>>

/** Applies a keyword to objects only. It does not affect other values. */
const forObjects =
  (keyword: (run: Run, schema: SchemaObject, value: Values, ...rest: Rest) => boolean): Keyword =>
  (run, schema, value, ...rest) =>
    !isObject(value) || keyword(run, schema, value, ...rest)

/** Looking up a compiled pattern takes as long as a few steps, even if there is nothing to match. */
const perPattern = 5

function within(run: Run, name: string, check: () => boolean): boolean {
  run.path.push(name)
  const isValid = check()
  run.path.pop()
  return isValid
}

/** Properties that match neither `properties` nor `patternProperties` of the same schema. */
function additionalNames(run: Run, { properties, patternProperties }: SchemaObject, value: Values): string[] {
  const names = Object.keys(patternProperties ?? {})
  run.meter.spend(names.length * perPattern)
  const patterns = names.map(pattern => matcherOf(run, pattern))
  return Object.keys(value).filter(name => {
    run.meter.spend(1)
    return !Object.hasOwn((properties as Schemas) ?? {}, name) && !patterns.some(matches => matches(name))
  })
}

function checkRequired(run: Run, names: readonly string[], value: Values): boolean {
  run.meter.spend(names.length)
  const missing = names.filter(name => !Object.hasOwn(value, name))
  for (const name of missing) refuse(run, () => `Instance does not have required property "${name}".`)
  return missing.length === 0
}

export const objectKeywords: Record<string, Keyword> = {
  required: forObjects((run, { required }, value) => checkRequired(run, required as string[], value)),
  minProperties: forObjects((run, { minProperties }, value) => {
    const names = Object.keys(value)
    run.meter.spend(names.length / 16)
    const isValid = names.length >= (minProperties as number)
    return isValid || refuse(run, () => `Instance does not have at least ${minProperties} properties.`)
  }),
  maxProperties: forObjects((run, { maxProperties }, value) => {
    const names = Object.keys(value)
    run.meter.spend(names.length / 16)
    const isValid = names.length <= (maxProperties as number)
    return isValid || refuse(run, () => `Instance has more than ${maxProperties} properties.`)
  }),
  properties: forObjects((run, { properties }, value, evaluated, apply) => {
    let isValid = true
    for (const [name, schema] of Object.entries(properties as Schemas)) {
      run.meter.spend(1)
      if (!Object.hasOwn(value, name)) continue
      note(run, evaluated, name)
      if (!within(run, name, () => apply(run, schema, value[name]))) isValid = false
    }
    return isValid
  }),
  patternProperties: forObjects((run, { patternProperties }, value, evaluated, apply) => {
    let isValid = true
    for (const [pattern, schema] of Object.entries(patternProperties as Schemas)) {
      run.meter.spend(perPattern)
      const matches = matcherOf(run, pattern)
      for (const name of Object.keys(value)) {
        if (!matches(name)) continue
        note(run, evaluated, name)
        if (!within(run, name, () => apply(run, schema, value[name]))) isValid = false
      }
    }
    return isValid
  }),
  additionalProperties: forObjects((run, schema, value, evaluated, apply) => {
    let isValid = true
    for (const name of additionalNames(run, schema, value)) {
      note(run, evaluated, name)
      if (within(run, name, () => apply(run, schema.additionalProperties as Schema, value[name]))) continue
      isValid = false
    }
    return isValid
  }),
  propertyNames: forObjects((run, { propertyNames }, value, _evaluated, apply) => {
    let isValid = true
    for (const name of Object.keys(value)) {
      if (!within(run, name, () => apply(run, propertyNames as Schema, name))) isValid = false
    }
    return isValid
  }),
  dependentRequired: forObjects((run, { dependentRequired }, value) => {
    const groups = Object.entries(dependentRequired as Record<string, string[]>)
    run.meter.spend(groups.length)
    const wanted = groups.filter(([name]) => Object.hasOwn(value, name))
    return wanted.filter(([, names]) => !checkRequired(run, names, value)).length === 0
  }),
  dependentSchemas: forObjects((run, { dependentSchemas }, value, evaluated, apply) => {
    const schemas = Object.entries(dependentSchemas as Schemas)
    run.meter.spend(schemas.length)
    const wanted = schemas.filter(([name]) => Object.hasOwn(value, name))
    return wanted.filter(([, schema]) => !apply(run, schema, value, evaluated)).length === 0
  }),
  /** Draft 7: both keywords above in one. */
  dependencies: forObjects((run, { dependencies }, value, evaluated, apply) => {
    const wanted = Object.entries(dependencies as Record<string, Schema | string[]>)
    run.meter.spend(wanted.length)
    const isValid = ([name, needs]: [string, Schema | string[]]) =>
      !Object.hasOwn(value, name) ||
      (isTexts(needs) ? checkRequired(run, needs, value) : apply(run, needs, value, evaluated))
    return wanted.filter(one => !isValid(one)).length === 0
  }),
}

/** Applies a keyword to lists only. It does not affect other values. */
const forArrays =
  (keyword: (run: Run, schema: SchemaObject, value: readonly unknown[], ...rest: Rest) => boolean): Keyword =>
  (run, schema, value, ...rest) =>
    !Array.isArray(value) || keyword(run, schema, value, ...rest)

const eachItem =
  (start: (schema: SchemaObject) => number, schemaAt: (schema: SchemaObject, index: number) => Schema | undefined) =>
  (run: Run, schema: SchemaObject, value: readonly unknown[], ...[evaluated, apply]: Rest): boolean => {
    let isValid = true
    for (let index = start(schema); index < value.length; index++) {
      const inner = schemaAt(schema, index)
      if (inner === undefined) break
      run.meter.spend(1)
      note(run, evaluated, index)
      run.path.push(index)
      if (!apply(run, inner, value[index])) isValid = false
      run.path.pop()
    }
    return isValid
  }

const fromStart = () => 0
const listIn = (schema: SchemaObject, keyword: string) =>
  Array.isArray(schema[keyword]) ? (schema[keyword] as Schema[]) : []

export const arrayKeywords: Record<string, Keyword> = {
  prefixItems: forArrays(eachItem(fromStart, (schema, index) => listIn(schema, 'prefixItems')[index])),
  /** In draft 7 it could also be a list, like `prefixItems` now. */
  items: forArrays((run, schema, ...rest) => {
    const check = Array.isArray(schema.items)
      ? eachItem(fromStart, ({ items }, index) => (items as Schema[])[index])
      : eachItem(
          () => listIn(schema, 'prefixItems').length,
          ({ items }) => items as Schema,
        )
    return check(run, schema, ...rest)
  }),
  additionalItems: forArrays((run, schema, ...rest) => {
    const check = eachItem(
      () => (schema.items as Schema[]).length,
      ({ additionalItems }) => additionalItems as Schema,
    )
    return !Array.isArray(schema.items) || check(run, schema, ...rest)
  }),
  contains: forArrays((run, schema, value, evaluated, apply) => {
    const { minContains: least = 1, maxContains: most = Infinity } = schema as Record<string, number>
    const found = quietly(run, () =>
      [...value.keys()].filter(index => apply(run, schema.contains as Schema, value[index])),
    )
    for (const index of found) note(run, evaluated, index)
    const { length } = found
    if (length < least && least === 1) return refuse(run, () => 'Array does not contain item matching schema.')
    if (length < least)
      return refuse(
        run,
        () => `Array must contain at least ${least} items matching schema. Only ${length} items were found.`,
      )
    return (
      length <= most ||
      refuse(run, () => `Array may contain at most ${most} items matching schema. ${length} items were found.`)
    )
  }),
  minItems: forArrays(
    (run, { minItems }, { length }) =>
      length >= (minItems as number) || refuse(run, () => `Array has too few items (${length} < ${minItems}).`),
  ),
  maxItems: forArrays(
    (run, { maxItems }, { length }) =>
      length <= (maxItems as number) || refuse(run, () => `Array has too many items (${length} > ${maxItems}).`),
  ),
  uniqueItems: forArrays((run, { uniqueItems }, value) => {
    if (uniqueItems !== true) return true
    // Equal items have equal canonical texts, so they need no pairwise comparison.
    const first = new Map<string, number>()
    run.meter.spend(value.length * noteSteps)
    for (const [index, item] of value.entries()) {
      const text = canonical(run.meter, item)
      const earlier = first.get(text)
      if (earlier !== undefined) return refuse(run, () => `Duplicate items at indexes ${earlier} and ${index}.`)
      first.set(text, index)
    }
    return true
  }),
}
