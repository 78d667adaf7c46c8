/** Flags that several commands have, and the API options made from them. */
import { userInfo } from 'node:os'
import type { CancelCall, ControlCall } from '../protocol/call-options.ts'

export const pageFlags = {
  limit: { kind: 'number', value: 'N', summary: 'maximum number of results' },
  cursor: { kind: 'text', value: 'CURSOR', summary: 'continue after an earlier page' },
} as const

export const historyFlags = {
  reason: { kind: 'text', value: 'TEXT', summary: 'the reason, recorded in the history' },
  as: { kind: 'text', value: 'NAME', summary: 'who is doing this, recorded in the history; default: your user name' },
} as const

export const cancelFlags = {
  ...historyFlags,
  hard: { kind: 'switch', summary: 'fence off running work immediately instead of letting it finish' },
} as const

export const idempotencyFlag = {
  'idempotency-key': {
    kind: 'text',
    value: 'KEY',
    summary: 'repeating the command with the same key has no second effect',
  },
} as const

type Optional<T> = { readonly [Name in keyof T]?: T[Name] | undefined }

export function controlOptions({ as, reason }: Optional<{ as: string; reason: string }>): ControlCall {
  return { actor: toAscii(as ?? userName()), ...(reason !== undefined && { reason }) }
}

export function cancelOptions({ hard, ...flags }: Optional<{ as: string; reason: string; hard: true }>): CancelCall {
  return { ...controlOptions(flags), ...(hard && { mode: 'hard' }) }
}

/** Removes undefined properties: the API checks every property that is present. */
export function withoutUndefined<T extends object>(options: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as never
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    return 'cli'
  }
}

/** The actor is sent in a header, which must be ASCII. */
function toAscii(name: string): string {
  const plain = name
    .normalize('NFKD')
    .replace(/[^\x20-\x7e]/g, '')
    .trim()
  return plain === '' ? 'cli' : plain
}
