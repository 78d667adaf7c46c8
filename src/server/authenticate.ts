/**
 * Authenticates requests. A server on a loopback address needs no keys, because every client that can reach it runs on the
 * same machine. But so does a browser with a web page of somebody else, so a request without a key must not look like
 * one from a page.
 */
import type { FastifyRequest } from 'fastify'
import { Problem } from '../kernel/problem.ts'
import type { Role } from '../kernel/role.ts'
import type { KeyView } from '../protocol/admin/admin.ts'

declare module 'fastify' {
  interface FastifyRequest {
    identity: Identity | null
    /** The key was checked before the whole body had arrived. */
    isBodyLate: boolean
  }
}

export interface Identity {
  /** The actor in events; undefined: the engine's default for the request. */
  readonly name: string | undefined
  /** Each of them grants its permissions. */
  readonly roles: readonly Role[]
  /** Queues that the key is limited to; null: no limit. */
  readonly queues: readonly string[] | null
  /** Id of the key; '': there is none. Idempotency keys belong to it. */
  readonly holder: string
}

export interface KeyRules {
  /** The key with this secret; undefined: there is none, or it was revoked. */
  keyOf(secret: string): Promise<KeyView | undefined>
  anyKeys(): Promise<boolean>
  /** Every request needs a key. */
  readonly keysOnly: boolean
}

const bearer = (authorization: string) => /^Bearer +(\S+)$/i.exec(authorization)?.[1]

/** Clients send a key in an Authorization header, and those of some dialects in a header of its own. */
export interface KeyShown {
  secretIn?(authorization: string): string | undefined
  readonly keyHeader?: string
}

export async function authenticate(keys: KeyRules, request: FastifyRequest, dialect?: KeyShown): Promise<Identity> {
  const { secretIn = bearer, keyHeader = '' } = dialect ?? {}
  const { authorization, [keyHeader]: plain } = request.headers
  const secret = authorization === undefined ? plain?.toString() : secretIn(authorization)
  const key = secret === undefined ? undefined : await keys.keyOf(secret)
  if (key !== undefined) return { name: key.name, roles: key.roles, queues: key.queues, holder: key.id }
  // Clients of other systems always send some key, even if the server has none. Otherwise a wrong key is a mistake.
  const isSent = (authorization ?? plain) !== undefined
  const isMistake = isSent && (dialect === undefined || (await keys.anyKeys()))
  if (isMistake || keys.keysOnly) throw new Problem('KEY_MISSING')
  refuseStrangers(request)
  return { name: undefined, roles: ['admin'], queues: null, holder: '' }
}

export async function identify(keys: KeyRules, request: FastifyRequest, dialect?: KeyShown): Promise<void> {
  request.identity = await authenticate(keys, request, dialect)
  request.isBodyLate = !request.raw.complete
}

/**
 * Checks the key again if the body had not arrived when the key was first checked. Otherwise a client could keep a
 * request open until its key is revoked, and then send the rest.
 */
export function checkKeyAgain(keys: KeyRules, dialect?: KeyShown) {
  return async (request: FastifyRequest): Promise<void> => {
    const isKeyed = request.identity !== null && request.identity.holder !== ''
    if (isKeyed && request.isBodyLate) await authenticate(keys, request, dialect)
  }
}

/** Refuses hosts that foreign DNS may point here, and pages of other sites: neither may use this machine. */
function refuseStrangers({ headers }: Pick<FastifyRequest, 'headers'>): void {
  const { host = '', origin } = headers
  const passedOn = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip'].find(
    name => name in headers,
  )
  // A client behind a proxy on this machine is not on this machine.
  if (passedOn !== undefined) throw new Problem('HOST_REFUSED', { header: passedOn })
  if (!isLoopback(nameIn(host))) throw new Problem('HOST_REFUSED', { host })
  if (origin !== undefined && origin.toLowerCase() !== `http://${host.toLowerCase()}`) {
    throw new Problem('HOST_REFUSED', { origin })
  }
}

/** For a GET that changes something: any page can make its browser send a GET, without an Origin. */
export function refusePages({ headers }: Pick<FastifyRequest, 'headers'>): void {
  const site = headers['sec-fetch-site'] ?? 'none'
  if (site !== 'none' && site !== 'same-origin') throw new Problem('HOST_REFUSED', { site })
}

const nameIn = (host: string) =>
  host
    .toLowerCase()
    .replace(/:\d+$/, '')
    .replace(/^\[(.*)\]$/, '$1')

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}
