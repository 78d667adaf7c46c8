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
/** How many items of one list of errors are read. */
const mostItems = 100

/** In place of a value that refuses to be read, such as a revoked Proxy. */
const unreadable: ErrorCause = { message: 'The thrown value could not be read.' }

/**
 * Describes anything that was thrown or reported as an error: an Error, an object like one, or any other value. Never
 * throws, whatever the getters and the Proxy traps of the value do. `mapStack` is applied to each stack.
 */
export function describeError(thrown: unknown, mapStack: (stack: string) => string = stack => stack): ErrorCause {
  try {
    return { ...describeOne(thrown, mapStack), ...causesOf(thrown, causeLimits, mapStack) }
  } catch {
    return unreadable
  }
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
    const errors = describeAll(itemsOf(fieldOf(value, 'errors')), each => describe(each, depth + 1, path))
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
  try {
    return describeReadable(value, longest, mapStack)
  } catch {
    return unreadable
  }
}

function describeReadable(value: unknown, longest: number, mapStack?: (stack: string) => string): ErrorCause {
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
  if (!isObject(value) || isArray(value)) return textOf(value)
  const inner = depth < 3 ? itemsOf(fieldOf(value, 'errors')) : []
  // Node throws an AggregateError without a message when every address of a host refuses the connection.
  if (inner.length > 0) {
    return inner
      .slice(0, 10)
      .map(each => messageOf(each, depth + 1))
      .join('; ')
  }
  const name = fieldOf(value, 'name')
  return typeof name === 'string' && name !== '' ? name : textOf(value)
}

/** Text as it is, and any other value as JSON, if it has any. Never throws. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  try {
    return (isObject(value) ? JSON.stringify(value) : undefined) ?? String(value)
  } catch {
    return tagOf(value)
  }
}

function tagOf(value: unknown): string {
  try {
    return Object.prototype.toString.call(value)
  } catch {
    return unreadable.message
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

/** `Array.isArray` throws for a revoked Proxy. */
function isArray(value: unknown): value is readonly unknown[] {
  try {
    return Array.isArray(value)
  } catch {
    return false
  }
}

/** The first items of a list; none if it is no list. An item that cannot be read says so. */
function itemsOf(list: unknown): unknown[] {
  const length = isArray(list) ? fieldOf(list, 'length') : 0
  if (typeof length !== 'number') return []
  // Not by its iterator, which may throw or never end.
  return Array.from({ length: Math.min(length, mostItems) }, (_, index) => {
    try {
      return (list as readonly unknown[])[index]
    } catch {
      return unreadable
    }
  })
}
