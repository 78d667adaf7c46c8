/** The keywords for values of any type, for numbers and for texts. */
import type { Meter } from '../meter.ts'
import { type Keyword, matcherOf, type Run, refuse } from './run.ts'
import { isObject, type SchemaObject } from './schema.ts'

type Bound = [isValid: (value: number, bound: number) => boolean, relation: string]

const bounds: Record<string, Bound> = {
  minimum: [(value, bound) => value >= bound, 'less than'],
  maximum: [(value, bound) => value <= bound, 'greater than'],
  exclusiveMinimum: [(value, bound) => value > bound, 'less than or equal to'],
  exclusiveMaximum: [(value, bound) => value < bound, 'greater than or equal to'],
  multipleOf: [isMultipleOf, 'not a multiple of'],
}

const numberKeywords = Object.entries(bounds).map(([name, [isValid, relation]]): [string, Keyword] => [
  name,
  (run, schema, value) => {
    const bound = schema[name] as number
    return typeof value !== 'number' || isValid(value, bound) || refuse(run, () => `${value} is ${relation} ${bound}.`)
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

/** The canonical text of a value: equal for values that JSON Schema considers equal, whatever the order of names. */
export function canonical(meter: Meter, value: unknown): string {
  if (Array.isArray(value)) {
    meter.spend(1)
    return `[${value.map(item => canonical(meter, item)).join(',')}]`
  }
  if (isObject(value)) {
    const names = Object.keys(value).sort()
    meter.spend(1 + names.length)
    return `{${names.map(name => `${text(meter, name)}:${canonical(meter, value[name])}`).join(',')}}`
  }
  // -0 equals 0.
  return typeof value === 'string' ? text(meter, value) : text(meter, value === 0 ? 0 : value)
}

function text(meter: Meter, value: unknown): string {
  meter.spend(typeof value === 'string' ? 1 + value.length / 16 : 1)
  return JSON.stringify(value)
}

/** Whether JSON Schema considers two values equal. */
function isSame(meter: Meter, one: unknown, other: unknown): boolean {
  meter.spend(typeof one === 'string' ? 0.25 + one.length / 64 : 0.25)
  if (one === other) return true
  if (Array.isArray(one)) {
    if (!Array.isArray(other) || one.length !== other.length) return false
    return one.every((item, index) => isSame(meter, item, other[index]))
  }
  if (!isObject(one) || !isObject(other)) return false
  const names = Object.keys(one)
  if (names.length !== Object.keys(other).length) return false
  return names.every(name => Object.hasOwn(other, name) && isSame(meter, one[name], other[name]))
}

const label = '[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?'
const uriCharacter = "(?:[a-zA-Z0-9\\-._~:/?@!$&'()*+,;=]|%[0-9a-fA-F]{2})"
const authority = `(?://(?:[a-zA-Z0-9\\-._~:@!$&'()*+,;=]|%[0-9a-fA-F]{2}|\\[[0-9a-fA-F:.v]+\\])*(?:[/?]${uriCharacter}*)?)`
/** A reference needs no scheme. */
const reference = `(?:${authority}|${uriCharacter}*)(?:#${uriCharacter}*)?`
const days = '(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)'
const hours = '(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)'
const word = '[^\\s"(),:;<>@[\\]\\\\.]+'
const byte = '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])'
const variable = '[a-zA-Z0-9_.%]+(?::[0-9]{1,4}|\\*)?'

/** At most four groups of at most three digits, so no backtracking. */
const ipv4 = new RegExp(`^(?:${byte}\\.){3}${byte}$`)

/** Patterns for RE2, which matches in linear time. */
const patterns: Record<string, string> = {
  uuid: '^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$',
  email: `^(?:"[^"\\\\]*"|${word}(?:\\.${word})*)@(?:${label}(?:\\.${label})*|\\[[0-9a-fA-FvVIP:.]+\\])$`,
  ipv4: ipv4.source,
  hostname: `^${label}(?:\\.${label})*$`,
  duration: `^P(?:[0-9]+W|${days}(?:T${hours})?|T${hours})$`,
  uri: `^[a-zA-Z][a-zA-Z0-9+.-]*:${reference}$`,
  'uri-reference': `^${reference}$`,
  'uri-template': `^(?:[^\\s"'<>\\\\^\`{|}]|\\{[+#./;?&=,!@|]?${variable}(?:,${variable})*\\})*$`,
  url: `^(?:https?|ftp)://[^\\s/?#]+(?:[/?#]\\S*)?$`,
  'json-pointer': '^(?:/(?:[^~/]|~[01])*)*$',
  'json-pointer-uri-fragment': `^#(?:/(?:[a-zA-Z0-9_\\-.!$&'()*+,;:=@]|%[0-9a-fA-F]{2}|~[01])*)*$`,
  'relative-json-pointer': '^(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^~/]|~[01])*)*)$',
}

const functions: Record<string, (text: string) => boolean> = {
  date: isDate,
  time: isTime,
  'date-time': text => /^[t\s]$/i.test(text[10] ?? '') && isDate(text.slice(0, 10)) && isTime(text.slice(11)),
  ipv6: isIPv6,
  regex: isRegex,
}

/** The check of a format; undefined: the format is not checked. */
function formatOf(run: Run, format: string): ((text: string) => boolean) | undefined {
  if (Object.hasOwn(functions, format)) {
    return text => {
      run.meter.spend(1 + text.length / 4)
      return functions[format]!(text)
    }
  }
  return Object.hasOwn(patterns, format) ? matcherOf(run, patterns[format]!) : undefined
}

function isDate(text: string): boolean {
  const [, year, month, day] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text)?.map(Number) ?? []
  if (year === undefined) return false
  // Date treats years below 100 as 19xx. The calendar repeats every 400 years.
  const date = new Date(Date.UTC(year + 400, month! - 1, day))
  return date.getUTCMonth() === month! - 1 && date.getUTCDate() === day
}

function isTime(text: string): boolean {
  const found = /^(\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(?:z|([+-])(\d{2}):(\d{2}))$/i.exec(text)
  if (found === null) return false
  const [, hour, minute, second, sign, offsetHour = '0', offsetMinute = '0'] = found
  if (Number(hour) > 23 || Number(minute) > 59 || Number(offsetHour) > 23 || Number(offsetMinute) > 59) return false
  if (Number(second) < 60) return true
  // A leap second is the last second of a UTC day.
  const offset = (sign === '-' ? -1 : 1) * (Number(offsetHour) * 60 + Number(offsetMinute))
  const minutes = (Number(hour) * 60 + Number(minute) - offset + 1440) % 1440
  return Number(second) === 60 && minutes === 1439
}

/** Eight groups. The last two may be an IPv4 address, and `::` stands for omitted groups. */
function isIPv6(text: string): boolean {
  if (text.length > 45) return false
  const [start = '', end, ...more] = text.split('::')
  const groups = [start, end ?? ''].flatMap(side => (side === '' ? [] : side.split(':')))
  const last = groups.at(-1) ?? ''
  const isMixed = last.includes('.') && text.endsWith(last)
  const isLastRight = !isMixed || ipv4.test(last)
  const areRight = (isMixed ? groups.slice(0, -1) : groups).every(group => /^[0-9a-f]{1,4}$/i.test(group))
  const length = groups.length + (isMixed ? 1 : 0)
  return more.length === 0 && isLastRight && areRight && (end === undefined ? length === 8 : length < 8)
}

/** A longer text could take seconds to parse. */
const longestRegex = 1000

function isRegex(text: string): boolean {
  if (text.length > longestRegex) return false
  try {
    new RegExp(text, 'u')
    return true
  } catch {
    return false
  }
}
