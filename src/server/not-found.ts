import type { FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../kernel/problem.ts'
import { type Route, routes } from '../protocol/routes.ts'
import { plainPaths } from './plain.ts'
import { sendProblem } from './problems.ts'

const known = [
  ...Object.values(routes).map(({ method, path }: Route) => ({ method, path })),
  ...plainPaths.map(path => ({ method: 'GET', path })),
].map(({ method, path }) => ({
  methods: method === 'GET' ? ['GET', 'HEAD'] : [method],
  pattern: new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}/?$`),
}))

/** An address that knows other methods says so. `root`: what all of them begin with. */
export function notFound(root: string) {
  return (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const [path = ''] = request.url.split('?')
    const within = path.slice(root.length)
    const methods = known.filter(({ pattern }) => pattern.test(within)).flatMap(({ methods }) => methods)
    if (methods.length === 0) return sendProblem(reply, new Problem('ROUTE_NOT_FOUND', { path }))
    return sendProblem(
      reply.header('allow', methods.join(', ')),
      new Problem('METHOD_REFUSED', { method: request.method, methods }),
    )
  }
}
