/** Reads what a request says as the original does: a number or a switch may come as text. What is wrong is a 422. */
import { isObject } from '../../schema/check.ts'

/** One thing that is wrong, as FastAPI's clients expect to be told. */
export interface Detail {
  readonly type: string
  readonly loc: readonly (string | number)[]
  readonly msg: string
  readonly input: unknown
}

export interface Reading {
  /** What it is where nothing is said. */
  readonly default: unknown
  read(said: unknown): { readonly value: unknown } | Pick<Detail, 'type' | 'msg'>
}

const flags: Readonly<Record<string, boolean>> = {
  ...{ true: true, t: true, yes: true, y: true, on: true, 1: true },
  ...{ false: false, f: false, no: false, n: false, off: false, 0: false },
}

export const flag = (usual: boolean): Reading => ({
  default: usual,
  read(said) {
    const word = typeof said === 'object' || said === undefined ? '' : String(said).toLowerCase()
    if (Object.hasOwn(flags, word)) return { value: flags[word] }
    return { type: 'bool_parsing', msg: 'It must be true or false.' }
  },
})

export const whole = (usual: number, { from, to }: { readonly from: number; readonly to: number }): Reading => ({
  default: usual,
  read(said) {
    const isText = typeof said === 'string' && /^[+-]?\d{1,15}$/.test(said.trim())
    const value = isText ? Number(said) : said
    if (typeof value !== 'number' || !Number.isInteger(value)) {
      return { type: 'int_parsing', msg: 'It must be a whole number.' }
    }
    if (value < from) return { type: 'greater_than_equal', msg: `It must be at least ${from}.` }
    if (value > to) return { type: 'less_than_equal', msg: `It must be at most ${to}.` }
    return { value }
  },
})

export const textOrNull: Reading = {
  default: null,
  read: said =>
    said === null || typeof said === 'string' ? { value: said } : { type: 'string_type', msg: 'It must be a text.' },
}

export const oneOf = (words: readonly string[]): Reading => ({
  default: undefined,
  read: said =>
    words.includes(said as string) ? { value: said } : { type: 'enum', msg: `It must be one of ${words.join(', ')}.` },
})

type Read = { readonly values: Record<string, unknown> } | { readonly details: readonly Detail[] }

/** Everything that is said; what is known is read, what is not is left as it is. */
export function readSaid(
  said: Readonly<Record<string, unknown>>,
  known: Readonly<Record<string, Reading>>,
  place: 'body' | 'query',
): Read {
  const details: Detail[] = []
  const values: Record<string, unknown> = { ...said }
  for (const [name, reading] of Object.entries(known)) {
    const read = said[name] === undefined ? { value: reading.default } : reading.read(said[name])
    if ('value' in read) values[name] = read.value
    else details.push({ ...read, loc: [place, name], input: said[name] })
  }
  return details.length > 0 ? { details } : { values }
}

/** A body may be left out. */
export function readBody(body: unknown): Read {
  if (body === undefined || body === null) return { values: {} }
  if (isObject(body)) return { values: body }
  return { details: [{ type: 'model_attributes_type', loc: ['body'], msg: 'It must be an object.', input: body }] }
}
