/** The keywords for lists. */
import { canonical } from './compare.ts'
import { type Apply, type Evaluated, type Keyword, note, noteSteps, quietly, type Run, refuse } from './run.ts'
import type { Schema, SchemaObject } from './schema.ts'

type Rest = [evaluated: Evaluated | undefined, apply: Apply]
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
