import type { FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../kernel/problem.ts'
import { dialectNames } from '../protocol/dialects.ts'
import { routes } from '../protocol/routes.ts'
import { plainPaths } from './plain.ts'
import { sendProblem } from './problems.ts'

interface Address {
  readonly method: string
  readonly path: string
}

/** Why there is no answer: an address that knows other methods says so. `root`: what all of them begin with. */
export function missing(addresses: readonly Address[], root: string) {
  const known = addresses.map(({ method, path }) => ({
    methods: method === 'GET' ? ['GET', 'HEAD'] : [method],
    pattern: new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}/?$`),
  }))
  return (request: FastifyRequest, reply: FastifyReply): Problem => {
    const [path = ''] = request.url.split('?')
    const within = path.slice(root.length)
    const methods = known.filter(({ pattern }) => pattern.test(within)).flatMap(({ methods }) => methods)
    if (methods.length === 0) return new Problem('ROUTE_NOT_FOUND', { path, ...notServed(path) })
    reply.header('allow', methods.join(', '))
    return new Problem('METHOD_REFUSED', { method: request.method, methods })
  }
}

/** A dialect is served only if the server was told to. */
function notServed(path: string): { readonly todo?: string } {
  const name = /^\/dialects\/([^/]+)/.exec(path)?.[1]
  const isKnown = (dialectNames as readonly unknown[]).includes(name)
  return isKnown ? { todo: `start the server with --dialect ${name}` } : {}
}

const own: readonly Address[] = [
  ...Object.values(routes),
  ...[...plainPaths, '/metrics', '/v1/me'].map(path => ({ method: 'GET', path })),
]

export function notFound(root: string) {
  const why = missing(own, root)
  return (request: FastifyRequest, reply: FastifyReply): FastifyReply => sendProblem(reply, why(request, reply))
}
