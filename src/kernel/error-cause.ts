/** The errors of attempts as they are stored: bounded, without cycles, and made of nothing but text. */
import { storableText } from './json.ts'

/** An error that led to another one. */
export interface ErrorCause {
  readonly message: string
  /** The error class or kind, as the handler's program names it. */
  readonly name?: string
  readonly stack?: string
  readonly cause?: ErrorCause
  /** The errors that an AggregateError holds. */
  readonly errors?: readonly ErrorCause[]
}

/** How much is kept of the causes of one error, all together. */
export interface CauseLimits {
  readonly count: number
  readonly depth: number
  readonly characters: number
}

export const causeLimits: CauseLimits = { count: 20, depth: 8, characters: 40_000 }

/** Maximum length of the message and of the stack of each error that a handler throws. */
const longestText = 10_000
const longestName = 200

/**
 * Describes anything that was thrown or reported as an error: an Error, an object like one, or any other value. Never
 * throws, whatever the getters of the value do. `mapStack` is applied to each stack.
 */
export function describeError(thrown: unknown, mapStack: (stack: string) => string = stack => stack): ErrorCause {
  return { ...describeOne(thrown, mapStack), ...causesOf(thrown, causeLimits, mapStack) }
}

/** The causes of an error, recursively, within the limits. A cycle ends the chain. */
export function causesOf(
  of: unknown,
  limits: CauseLimits,
  mapStack?: (stack: string) => string,
): Pick<ErrorCause, 'cause' | 'errors'> {
  const left = { count: limits.count, characters: limits.characters }
  const describe = (value: unknown, depth: number, above: readonly unknown[]): ErrorCause | undefined => {
    if (above.includes(value)) return undefined
    if (depth > limits.depth || left.count === 0 || left.characters === 0) return omitted
    left.count -= 1
    const described = describeOne(value, mapStack, left.characters)
    const { message, name = '', stack = '' } = described
    left.characters = Math.max(0, left.characters - message.length - name.length - stack.length)
    return { ...described, ...inner(value, depth, above) }
  }
  const inner = (value: unknown, depth: number, above: readonly unknown[]) => {
    const path = [...above, value]
    const causeValue = fieldOf(value, 'cause') ?? undefined
    const cause = causeValue === undefined ? undefined : describe(causeValue, depth + 1, path)
    const list = fieldOf(value, 'errors')
    const errors = Array.isArray(list) ? describeAll(list, each => describe(each, depth + 1, path)) : []
    return { ...(cause !== undefined && { cause }), ...(errors.length > 0 && { errors }) }
  }
  return inner(of, 0, [])
}

const omitted: ErrorCause = { message: 'Further errors were omitted.' }

function describeAll(list: readonly unknown[], describe: (value: unknown) => ErrorCause | undefined): ErrorCause[] {
  const described: ErrorCause[] = []
  for (const value of list) {
    const one = describe(value)
    if (one !== undefined) described.push(one)
    if (one === omitted) break
  }
  return described
}

function describeOne(value: unknown, mapStack?: (stack: string) => string, longest = longestText): ErrorCause {
  const cut = (text: string) => storableText(text, Math.min(longest, longestText))
  const [name, stack] = [fieldOf(value, 'name'), fieldOf(value, 'stack')]
  // Every error has a name, and that of a plain Error says nothing.
  const isNamed = typeof name === 'string' && name !== '' && name !== 'Error'
  return {
    message: cut(messageOf(value)),
    ...(isNamed && { name: storableText(name, longestName) }),
    ...(typeof stack === 'string' && stack !== '' && { stack: cut(mapStack?.(stack) ?? stack) }),
  }
}

function messageOf(value: unknown, depth = 0): string {
  const message = fieldOf(value, 'message')
  if (typeof message === 'string' && message !== '') return message
  if (!isObject(value) || Array.isArray(value)) return textOf(value)
  const inner = fieldOf(value, 'errors')
  // Node throws an AggregateError without a message when every address of a host refuses the connection.
  if (Array.isArray(inner) && inner.length > 0 && depth < 3) {
    return inner
      .slice(0, 10)
      .map(each => messageOf(each, depth + 1))
      .join('; ')
  }
  const name = fieldOf(value, 'name')
  return typeof name === 'string' && name !== '' ? name : textOf(value)
}

/** Text as it is, and any other value as JSON, if it has any. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  try {
    return (isObject(value) ? JSON.stringify(value) : undefined) ?? String(value)
  } catch {
    return Object.prototype.toString.call(value)
  }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

function fieldOf(value: unknown, name: string): unknown {
  if (!isObject(value)) return undefined
  try {
    return (value as Record<string, unknown>)[name]
  } catch {
    return undefined
  }
}
