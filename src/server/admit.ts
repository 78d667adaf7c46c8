/**
 * Who asks, and whether it may. A server on a loopback address needs no keys, for whoever reaches it has the machine;
 * but a web page in a browser there reaches it too, so without a key the request must not look like a page's.
 */
import type { FastifyRequest } from 'fastify'
import { Problem } from '../kernel/problem.ts'
import { may, type Permission, type Role, roles } from '../kernel/role.ts'
import type { KeyView } from '../protocol/admin/keys.ts'

export interface Asker {
  /** The actor in events; undefined: the engine's own word for such requests. */
  readonly name: string | undefined
  /** It may do whatever one of these allows. */
  readonly roles: readonly Role[]
  /** null: every queue. */
  readonly queues: readonly string[] | null
  /** Whose idempotency keys these are. */
  readonly holder: string
}

export interface Door {
  /** Whose key this is. */
  keyOf(secret: string): Promise<KeyView | undefined>
  anyKeys(): Promise<boolean>
  /** Nobody is let in without a key. */
  readonly keysOnly: boolean
}

const bearer = (authorization: string) => /^Bearer +(\S+)$/i.exec(authorization)?.[1]

/** How a key is shown: in an Authorization header, and, to some dialects, in one of its own. */
export interface KeyShown {
  secretIn?(authorization: string): string | undefined
  readonly keyHeader?: string
}

export async function admit(door: Door, request: FastifyRequest, dialect?: KeyShown): Promise<Asker> {
  const { secretIn = bearer, keyHeader = '' } = dialect ?? {}
  const { authorization, [keyHeader]: plain } = request.headers
  const secret = authorization === undefined ? plain?.toString() : secretIn(authorization)
  const key = secret === undefined ? undefined : await door.keyOf(secret)
  if (key !== undefined) return { name: key.name, roles: key.roles, queues: key.queues, holder: key.id }
  // Clients of other systems always send something, also where there are no keys; else a wrong one is a mistake.
  const isSaid = (authorization ?? plain) !== undefined
  const isMistake = isSaid && (dialect === undefined || (await door.anyKeys()))
  if (isMistake || door.keysOnly) throw new Problem('KEY_MISSING')
  refuseStrangers(request)
  return { name: undefined, roles: ['admin'], queues: null, holder: '' }
}

/** One of these permissions is enough. */
export function demand({ roles: held }: Pick<Asker, 'roles'>, permission: Permission | readonly Permission[]): void {
  const wanted = [permission].flat()
  const suffices = (some: Role | readonly Role[]) => wanted.some(each => may(some, each))
  if (suffices(held)) return
  const able = (Object.keys(roles) as Role[]).filter(suffices)
  throw new Problem('KEY_REFUSED', { role: held.join(', '), lacks: wanted.join(' or '), able })
}

/** A name that somebody else's DNS points here, or a page of another site: neither may make this machine work. */
function refuseStrangers({ headers }: Pick<FastifyRequest, 'headers'>): void {
  const { host = '', origin } = headers
  const passedOn = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip'].find(
    name => name in headers,
  )
  // Who stands behind a proxy on this machine is not on this machine.
  if (passedOn !== undefined) throw new Problem('HOST_REFUSED', { header: passedOn })
  if (!isLoopback(nameIn(host))) throw new Problem('HOST_REFUSED', { host })
  if (origin !== undefined && origin.toLowerCase() !== `http://${host.toLowerCase()}`) {
    throw new Problem('HOST_REFUSED', { origin })
  }
}

/** A page can make its browser GET from anywhere, and sends no Origin with it: where that changes something, it may not. */
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
