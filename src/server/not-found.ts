import type { FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../kernel/problem.ts'
import { dialectNames } from '../protocol/dialects.ts'
import { operations } from '../protocol/operations.ts'
import { sendProblem } from './problems.ts'
import { publicPaths } from './public-routes.ts'

interface Address {
  readonly method: string
  readonly path: string
}

/** The problem of a request without a route. It lists the methods that the path allows. `root`: prefix of all paths. */
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

/** Dialects are served only if they are enabled. */
function notServed(path: string): { readonly todo?: string } {
  const name = /^\/dialects\/([^/]+)/.exec(path)?.[1]
  const isKnown = (dialectNames as readonly unknown[]).includes(name)
  return isKnown ? { todo: `start the server with --dialect ${name}` } : {}
}

const own: readonly Address[] = [
  ...Object.values(operations),
  ...[...publicPaths, '/metrics', '/v1/me'].map(path => ({ method: 'GET', path })),
]

export function notFound(root: string) {
  const why = missing(own, root)
  return (request: FastifyRequest, reply: FastifyReply): FastifyReply => sendProblem(reply, why(request, reply))
}
