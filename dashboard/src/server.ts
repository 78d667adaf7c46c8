/** The server that served this page, under any path, through the same client that programs use. */
import { connect, type PawlClient } from '../../src/client/client.ts'
import type { Me } from '../../src/protocol/admin/admin.ts'

export const base = new URL('.', document.baseURI).href.replace(/\/$/, '')

/** The key is stored for this tab only, until it is closed. */
const keyName = 'pawl-key'

export function storedKey(): string | undefined {
  return sessionStorage.getItem(keyName) ?? undefined
}

export function storeKey(key: string | undefined): void {
  if (key === undefined) sessionStorage.removeItem(keyName)
  else sessionStorage.setItem(keyName, key)
  api = open()
}

function open(): PawlClient {
  const key = storedKey()
  return connect({ server: base, patienceSeconds: 0, ...(key !== undefined && { key }) })
}

export let api: PawlClient = open()

export function headers(): Record<string, string> {
  const key = storedKey()
  return key === undefined ? {} : { authorization: `Bearer ${key}` }
}

/** Undefined: the server requires a key. */
export async function whoAmI(): Promise<Me | undefined> {
  const response = await fetch(`${base}/v1/me`, { headers: headers() })
  if (response.status === 401) return undefined
  if (!response.ok) throw new Error(`The server answered ${response.status}.`)
  return (await response.json()) as Me
}
