/** Flags that several commands have, and the API options made from them. */
import { userInfo } from 'node:os'
import type { ControlCall } from '../protocol/call-options.ts'

export const pageFlags = {
  limit: { kind: 'number', value: 'N', summary: 'maximum number of results' },
  cursor: { kind: 'text', value: 'CURSOR', summary: 'continue after an earlier page' },
} as const

export const stateFlag = (states: readonly string[], more = '') =>
  ({ kind: 'list', value: 'STATE', summary: `only in this state, may be repeated${more}`, words: states }) as const

export const historyFlags = {
  reason: { kind: 'text', value: 'TEXT', summary: 'the reason, recorded in the history' },
  as: { kind: 'text', value: 'NAME', summary: 'who is doing this, recorded in the history; default: your user name' },
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
