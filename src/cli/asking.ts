/** Flags that commands share, and what they make of them. */
import { userInfo } from 'node:os'
import type { CancelCall, ControlCall } from '../protocol/api.ts'

export const pageFlags = {
  limit: { kind: 'number', value: 'N', says: 'at most so many' },
  cursor: { kind: 'text', value: 'CURSOR', says: 'go on where an earlier page ended' },
} as const

export const callFlags = {
  reason: { kind: 'text', value: 'TEXT', says: 'why, for the history' },
  as: { kind: 'text', value: 'NAME', says: 'who does it, for the history; default: you' },
} as const

export const cancelFlags = {
  ...callFlags,
  hard: { kind: 'switch', says: 'fence off work in hand at once, instead of letting it finish' },
} as const

/** Whoever lost the answer can ask again under the same key, and nothing is done twice. */
export const onceFlag = {
  'idempotency-key': { kind: 'text', value: 'KEY', says: 'typed again with the same key, it has no second effect' },
} as const

type Said<T> = { readonly [Name in keyof T]?: T[Name] | undefined }

export function callOf({ as, reason }: Said<{ as: string; reason: string }>): ControlCall {
  return { actor: inAscii(as ?? userName()), ...(reason !== undefined && { reason }) }
}

export function cancelOf({ hard, ...flags }: Said<{ as: string; reason: string; hard: true }>): CancelCall {
  return { ...callOf(flags), ...(hard && { mode: 'hard' }) }
}

/** Without what was not said: an option that is there and undefined is no option. */
export function said<T extends object>(options: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as never
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    return 'cli'
  }
}

/** It travels in a header, which holds nothing else. */
function inAscii(name: string): string {
  const plain = name
    .normalize('NFKD')
    .replace(/[^\x20-\x7e]/g, '')
    .trim()
  return plain === '' ? 'cli' : plain
}
