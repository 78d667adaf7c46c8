import { Problem } from '../../kernel/problem.ts'
import { isObject } from '../../schema/check.ts'

/** What a field must hold. */
export interface Reads<T> {
  is(value: unknown): value is T
  readonly must: string
}

type Held<Shape> = { readonly [Name in keyof Shape]: Shape[Name] extends Reads<infer T> ? T : never }

/** What a request must hold; what is not there is null. Whatever else is in it is passed over, as the original does. */
export function read<Shape extends Readonly<Record<string, Reads<unknown>>>>(body: unknown, shape: Shape): Held<Shape> {
  if (!isObject(body)) throw new Problem('BODY_INVALID', { why: 'it must be an object' })
  const entries = Object.entries(shape).map(([name, { is, must }]) => {
    const value = body[name] ?? null
    if (!is(value)) throw new Problem('OPTION_INVALID', { option: name, must })
    return [name, value]
  })
  return Object.fromEntries(entries) as Held<Shape>
}

export const object: Reads<Record<string, unknown>> = { is: isObject, must: 'be an object' }

export const list: Reads<readonly unknown[]> = {
  is: (value): value is readonly unknown[] => Array.isArray(value),
  must: 'be a list',
}

export const text: Reads<string> = {
  is: (value): value is string => typeof value === 'string' && value !== '',
  must: 'be a text that is not empty',
}

export const textOrNull: Reads<string | null> = {
  is: (value): value is string | null => value === null || typeof value === 'string',
  must: 'be a text or null',
}

/** How an attempt, or an upload, may end. */
export const ending: Reads<'done' | 'error'> = {
  is: (value): value is 'done' | 'error' => value === 'done' || value === 'error',
  must: 'be done or error',
}

/** Text of any program, as the database can keep it, and not too much of it: the end tells most. */
export function kept(said: string, most = 65_536): string {
  const clean = said.toWellFormed().replaceAll('\0', '\uFFFD')
  if (clean.length <= most) return clean
  return `(the first ${clean.length - most} characters are not kept)\n${clean.slice(-most).toWellFormed()}`
}
