/** The keywords for values of any type, for numbers and for texts. */
import { isSame } from './compare.ts'
import { formatOf } from './formats.ts'
import { matcherOf } from './patterns.ts'
import { type Keyword, type Run, refuse } from './run.ts'
import type { SchemaObject } from './schema.ts'

type Bound = [isValid: (value: number, bound: number) => boolean, says: string]

const bounds: Record<string, Bound> = {
  minimum: [(value, bound) => value >= bound, 'less than'],
  maximum: [(value, bound) => value <= bound, 'greater than'],
  exclusiveMinimum: [(value, bound) => value > bound, 'less than or equal to'],
  exclusiveMaximum: [(value, bound) => value < bound, 'greater than or equal to'],
  multipleOf: [isMultipleOf, 'not a multiple of'],
}

const numberKeywords = Object.entries(bounds).map(([name, [isValid, says]]): [string, Keyword] => [
  name,
  (run, schema, value) => {
    const bound = schema[name] as number
    return typeof value !== 'number' || isValid(value, bound) || refuse(run, () => `${value} is ${says} ${bound}.`)
  },
])

/** Applies a keyword to texts only. It does not affect other values. */
const forTexts =
  (keyword: (run: Run, schema: SchemaObject, value: string) => boolean): Keyword =>
  (run, schema, value) =>
    typeof value !== 'string' || keyword(run, schema, value)

export const assertions: Record<string, Keyword> = {
  type(run, { type }, value) {
    const own = typeOf(value)
    const isOf = (name: unknown) => name === own || (name === 'integer' && Number.isInteger(value))
    const isValid = Array.isArray(type) ? type.some(isOf) : isOf(type)
    const wanted = () => [type].flat().join('", "')
    return isValid || refuse(run, () => `Instance type "${own}" is invalid. Expected "${wanted()}".`)
  },
  const(run, schema, value) {
    const isValid = isSame(run.meter, value, schema.const)
    return isValid || refuse(run, () => `Instance does not match ${shown(schema.const)}.`)
  },
  enum(run, { enum: members }, value) {
    const isValid = (members as unknown[]).some(member => isSame(run.meter, value, member))
    return isValid || refuse(run, () => `Instance does not match any of ${shown(members)}.`)
  },
  ...Object.fromEntries(numberKeywords),
  minLength: forTexts((run, { minLength }, value) => {
    const length = charactersIn(run, value)
    return length >= (minLength as number) || refuse(run, () => `String is too short (${length} < ${minLength}).`)
  }),
  maxLength: forTexts((run, { maxLength }, value) => {
    const length = charactersIn(run, value)
    return length <= (maxLength as number) || refuse(run, () => `String is too long (${length} > ${maxLength}).`)
  }),
  pattern: forTexts((run, { pattern }, value) => {
    const matches = matcherOf(run, pattern as string)
    return matches(value) || refuse(run, () => 'String does not match pattern.')
  }),
  format: forTexts((run, { format }, value) => {
    const fits = formatOf(run, format as string)
    return fits === undefined || fits(value) || refuse(run, () => `String does not match format "${format}".`)
  }),
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

const longestShown = 200

/** A constant may be large, and may be part of many messages. */
const texts = new WeakMap<object, string>()

function shown(value: unknown): string {
  if (typeof value !== 'object' || value === null) return truncate(value)
  const text = texts.get(value) ?? truncate(value)
  texts.set(value, text)
  return text
}

function truncate(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length > longestShown ? `${text.slice(0, longestShown)}…` : text
}

/** Characters outside the basic plane are two units in JavaScript and one character in JSON Schema. */
function charactersIn(run: Run, text: string): number {
  run.meter.spend(text.length / 16)
  let count = 0
  for (let index = 0; index < text.length; count++) index += text.codePointAt(index)! > 0xffff ? 2 : 1
  return count
}

/** Computes with whole numbers, because 0.3 / 0.1 is not 3. */
function isMultipleOf(value: number, divisor: number): boolean {
  const [one, other] = [decimal(value), decimal(divisor)]
  const exponent = Math.min(one.exponent, other.exponent)
  const scaled = ({ digits, exponent: own }: Decimal) => digits * 10n ** BigInt(own - exponent)
  return scaled(one) % scaled(other) === 0n
}

interface Decimal {
  readonly digits: bigint
  readonly exponent: number
}

function decimal(value: number): Decimal {
  const [digits, exponent] = value.toExponential().split('e') as [string, string]
  const [whole, fraction = ''] = digits.split('.') as [string, string?]
  return { digits: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length }
}
