/** Options are checked here, once, before anything is done with them: by a table of fields. */
import { Problem } from './problem.ts'
import { nearest } from './suggest.ts'

/** Says what a value must be, or nothing if it is. */
export type Field = (value: unknown) => string | undefined
export type Fields = Readonly<Record<string, Field>>

export function checkOptions(given: object, fields: Fields, where: string): void {
  for (const name of Object.keys(given)) {
    const value = (given as Record<string, unknown>)[name]
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (field === undefined) {
      const meant = nearest(name, Object.keys(fields))
      throw new Problem('OPTION_UNKNOWN', { at: where, option: name, ...(meant && { didYouMean: meant }) })
    }
    if (value === undefined) continue
    const fault = field(value)
    if (fault !== undefined) throw new Problem('OPTION_INVALID', { at: where, option: name, must: fault })
  }
}

export function text(longest: number): Field {
  return value => {
    if (typeof value !== 'string' || value.length === 0) return 'be a text that is not empty'
    if (value.length > longest) return `have at most ${longest} characters`
    return /\0/.test(value) || !value.isWellFormed() ? 'hold no NUL and no broken characters' : undefined
  }
}

export function number({ from, to, whole = false }: { from: number; to: number; whole?: boolean }): Field {
  return value => {
    if (typeof value !== 'number' || !Number.isFinite(value)) return 'be a number'
    if (whole && !Number.isInteger(value)) return 'be a whole number'
    return value < from || value > to ? `be from ${from} to ${to}` : undefined
  }
}

export function oneOf(words: readonly unknown[]): Field {
  return value =>
    words.includes(value) ? undefined : `be one of ${words.map(word => JSON.stringify(word)).join(', ')}`
}

export function orNull(field: Field): Field {
  return value => (value === null ? undefined : field(value))
}

export function nested(fields: Fields): Field {
  return value => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'be an object'
    for (const [name, inner] of Object.entries(value)) {
      const field = Object.hasOwn(fields, name) ? fields[name] : undefined
      if (field === undefined) {
        const meant = nearest(name, Object.keys(fields))
        return `not have "${name}"${meant === undefined ? '' : `; did you mean "${meant}"?`}`
      }
      const fault = inner === undefined ? undefined : field(inner)
      if (fault !== undefined) return `have a "${name}" that must ${fault}`
    }
    return undefined
  }
}

export const anything: Field = () => undefined

export const moment: Field = value => {
  const date = value instanceof Date ? value : typeof value === 'string' ? new Date(value) : undefined
  if (date === undefined || Number.isNaN(date.getTime())) return 'be a Date or an ISO 8601 text'
  return date.getUTCFullYear() < 1970 || date.getUTCFullYear() > 9999 ? 'be between the years 1970 and 9999' : undefined
}
