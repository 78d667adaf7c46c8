/** Flags that commands share, and what they make of them. */
import { userInfo } from 'node:os'
import type { CancelCall, ControlCall } from '../protocol/call-options.ts'

export const pageFlags = {
  limit: { kind: 'number', value: 'N', summary: 'maximum number of results' },
  cursor: { kind: 'text', value: 'CURSOR', summary: 'continue after an earlier page' },
} as const

export const callFlags = {
  reason: { kind: 'text', value: 'TEXT', summary: 'the reason, recorded in the history' },
  as: { kind: 'text', value: 'NAME', summary: 'who is doing this, recorded in the history; default: your user name' },
} as const

export const cancelFlags = {
  ...callFlags,
  hard: { kind: 'switch', summary: 'fence off running work immediately instead of letting it finish' },
} as const

/** Whoever lost the answer can ask again under the same key, and nothing is done twice. */
export const onceFlag = {
  'idempotency-key': {
    kind: 'text',
    value: 'KEY',
    summary: 'repeating the command with the same key has no second effect',
  },
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
