/** Describes the requests of the role tests. */
import assert from 'node:assert/strict'
import type { Permission } from '../../src/kernel/role.ts'
import type { DialectName } from '../../src/protocol/dialects.ts'
import type { FalconeriRig } from '../harness/falconeri.ts'

export interface Recipe {
  /** Any one of these sets is enough. An empty list means that the route needs no key. */
  readonly needs: readonly (readonly Permission[])[]
  /** A key that is limited to some queues must include those of the request's entities. */
  readonly scoped?: true
  /** With the permission `work`, only the key that claimed the task may make the request. */
  readonly held?: true
  /** Creates the entities of the request; `claimer` claims the task if it must be held. */
  readonly prepare: (world: World, claimer: Send) => Promise<Asked>
}

/** The path parameters by name, and the rest of the request. */
export interface Asked {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: string
  readonly body?: unknown
}

/** Sends a request to a dialect with one key. */
export type Send = (
  dialect: DialectName,
  method: string,
  path: string,
  body?: unknown,
) => Promise<{ readonly status: number; readonly text: string }>

export interface World extends Pick<FalconeriRig, 'engine' | 'spec'> {
  readonly admin: Send
}

export type Table = Readonly<Record<string, readonly Recipe[]>>

const read = [['read']] as const
export const produce = [['produce']] as const
const operate = [['operate']] as const
export const work = [['work']] as const
export const worksAndReads = [['work', 'read']] as const

/** A request without entities. */
const nothing = async (): Promise<Asked> => ({})

export const open = (prepare: Recipe['prepare'] = nothing): readonly Recipe[] => [{ needs: [], prepare }]
export const reading = (prepare: Recipe['prepare'] = nothing): readonly Recipe[] => [{ needs: read, prepare }]
export const operating = (prepare: Recipe['prepare']): readonly Recipe[] => [{ needs: operate, prepare }]

export const producing = (prepare: Recipe['prepare']): readonly Recipe[] => [{ needs: produce, scoped: true, prepare }]

export async function well<T = { id: string }>(send: Send, ...asked: Parameters<Send>): Promise<T> {
  const { status, text } = await send(...asked)
  assert.ok(status >= 200 && status < 300, `${asked.slice(0, 3).join(' ')}: ${status} ${text}`)
  return (text === '' ? undefined : JSON.parse(text)) as T
}
