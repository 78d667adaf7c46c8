/**
 * A small Kubernetes API server: the real paths, verbs and shapes of Jobs and pods, as far as Pawl uses them, and
 * watches. It authenticates by token, and lets a test set permissions and network faults.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { faultsInShape } from './client-shapes.ts'
import { failure, type JobManifest, type KubeObject, type Status, success } from './shapes.ts'
import { type Change, type Resource, SmallCluster } from './small-cluster.ts'

export interface Asked {
  readonly verb: 'create' | 'delete' | 'get' | 'list' | 'watch'
  readonly resource: Resource
  readonly namespace: string
  readonly name: string | undefined
  readonly query: URLSearchParams
}

/**
 * Replaces a response: an error, silence, a truncated body, or a reply that is not from Kubernetes. Or the request is
 * carried out and its response lost.
 */
export type Fault = { readonly status: number } | 'silence' | 'cut' | 'lost' | { readonly body: string }

export const token = 'the-token'
const groups = { jobs: 'batch', pods: '' } as const

export async function startSmallApiServer(t: TestContext, namespaces: readonly string[]): Promise<SmallApiServer> {
  const http = createServer((request, response) => void server.answer(request, response))
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  t.after(() => {
    http.closeAllConnections()
    http.close()
  })
  const server = new SmallApiServer(`http://127.0.0.1:${(http.address() as AddressInfo).port}`, namespaces)
  return server
}

export class SmallApiServer {
  readonly cluster = new SmallCluster()
  /** The requests so far. */
  readonly asked: Asked[] = []
  /** Default: no faults. */
  meddle: (asked: Asked) => Fault | undefined = () => undefined
  /** Default: anyone with the token may do everything. */
  allows: (asked: Asked) => boolean = () => true
  readonly url: string
  readonly #namespaces: readonly string[]
  readonly #pages = new Map<string, readonly KubeObject[]>()

  constructor(url: string, namespaces: readonly string[]) {
    this.url = url
    this.#namespaces = namespaces
  }

  /** From now on, lists that were started cannot be continued. */
  expirePages(): void {
    this.#pages.clear()
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = request.method === 'POST' ? await json(request) : undefined
    const asked = readRequest(request)
    if (asked === undefined) return send(response, failure(404, 'NotFound', 'the server could not find the resource'))
    this.asked.push(asked)
    if (request.headers.authorization !== `Bearer ${token}`) {
      return send(response, failure(401, 'Unauthorized', 'Unauthorized'))
    }
    const fault = this.meddle(asked)
    if (fault === 'lost') {
      this.#act(asked, body)
      response.destroy()
      return
    }
    if (fault !== undefined) return misbehave(response, fault)
    if (!this.allows(asked)) return send(response, forbidden(asked))
    if (asked.verb === 'watch') return this.#stream(response, asked)
    send(response, this.#act(asked, body))
  }

  #act(asked: Asked, body: unknown): object {
    const { verb, resource, namespace, name = '' } = asked
    if (verb === 'create') return this.#create(namespace, body as JobManifest)
    if (verb === 'list') return this.#list(asked)
    const found = this.cluster.find(resource, namespace, name)
    const details = { name, group: groups[resource], kind: resource }
    if (found === undefined) return failure(404, 'NotFound', `${kindOf(resource)} "${name}" not found`, { details })
    if (verb === 'get') return found
    // By default, deleting a Job of batch/v1 leaves its pods behind.
    const policy = asked.query.get('propagationPolicy') ?? 'Orphan'
    this.cluster.removeJob(found, { orphans: policy === 'Orphan' })
    return success({ ...details, uid: found.metadata.uid })
  }

  #create(namespace: string, job: JobManifest): object {
    const faults = faultsInShape(job, 'V1Job')
    if (faults.length > 0) return failure(400, 'BadRequest', `strict decoding error: ${faults.join(', ')}`)
    const { name } = job.metadata
    const details = { name, group: 'batch', kind: 'jobs' }
    if (!this.#namespaces.includes(namespace)) return failure(404, 'NotFound', `namespaces "${namespace}" not found`)
    if (this.cluster.find('jobs', namespace, name) !== undefined) {
      return failure(409, 'AlreadyExists', `jobs.batch "${name}" already exists`, { details })
    }
    if (!((job.spec.parallelism as number) >= 0)) {
      const why = 'spec.parallelism: Invalid value: must be greater than or equal to 0'
      return failure(422, 'Invalid', `Job.batch "${name}" is invalid: ${why}`, { details })
    }
    return this.cluster.createJob(job, namespace)
  }

  #list({ resource, namespace, query }: Asked): object {
    const asked = query.get('continue')
    const rest = asked === null ? selected(this.cluster.list(resource, namespace), query) : this.#pages.get(asked)
    if (rest === undefined) {
      const message = 'The provided continue parameter is too old to display a consistent list result.'
      return failure(410, 'Expired', message, { metadata: { continue: 'inconsistent' } })
    }
    const limit = Number(query.get('limit') ?? 0) || rest.length
    const next = this.#keep(rest.slice(limit))
    return {
      kind: resource === 'jobs' ? 'JobList' : 'PodList',
      apiVersion: resource === 'jobs' ? 'batch/v1' : 'v1',
      metadata: { resourceVersion: this.cluster.version, ...(next !== undefined && { continue: next }) },
      // In a list, the kind of the items is given only once.
      items: rest.slice(0, limit).map(({ apiVersion: _, kind: __, ...item }) => item),
    }
  }

  /** All pages show the same moment, so later pages are stored now. */
  #keep(later: readonly KubeObject[]): string | undefined {
    if (later.length === 0) return undefined
    const next = Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', n: this.#pages.size })).toString('base64url')
    this.#pages.set(next, structuredClone(later))
    return next
  }

  /** One line per change: first those since the given version, then new ones. */
  #stream(response: ServerResponse, { resource, namespace, query }: Asked): void {
    const since = Number(query.get('resourceVersion') ?? this.cluster.version)
    const isWanted = ({ resource: of, object }: Change) =>
      of === resource && object.metadata.namespace === namespace && selected([object], query).length > 0
    const tell = (change: Change) => {
      if (isWanted(change)) response.write(`${JSON.stringify({ type: change.type, object: change.object })}\n`)
    }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    for (const change of this.cluster.changes) if (Number(change.object.metadata.resourceVersion) > since) tell(change)
    response.on('close', this.cluster.watch(tell))
  }
}

const verbs = { POST: 'create', DELETE: 'delete', GET: 'list' } as const

function readRequest({ method = '', url = '/' }: IncomingMessage): Asked | undefined {
  const { pathname, searchParams: query } = new URL(url, 'http://api')
  const found = /^\/(?:apis\/batch|api)\/v1\/namespaces\/([^/]+)\/(jobs|pods)(?:\/([^/]+))?$/.exec(pathname)
  const verb = verbs[method as keyof typeof verbs]
  if (found === null || verb === undefined) return undefined
  const [, namespace, resource, name] = found
  if (pathname.startsWith('/apis/') !== (resource === 'jobs')) return undefined
  const reading = name !== undefined ? 'get' : query.get('watch') === 'true' ? 'watch' : 'list'
  const asked = { resource: resource as Resource, namespace: namespace!, name, query }
  return { ...asked, verb: verb === 'list' ? reading : verb }
}

function selected(objects: readonly KubeObject[], query: URLSearchParams): readonly KubeObject[] {
  const wanted = (query.get('labelSelector') ?? '').split(',').filter(Boolean)
  const fits = ({ metadata: { labels = {} } }: KubeObject) =>
    wanted.every(part => labels[part.slice(0, part.indexOf('='))] === part.slice(part.indexOf('=') + 1))
  return objects.filter(fits)
}

function kindOf(resource: Resource): string {
  return resource === 'jobs' ? 'jobs.batch' : 'pods'
}

function forbidden({ verb, resource, namespace, name }: Asked): Status {
  const who = 'User "system:serviceaccount:pawl:pawl"'
  const what = `cannot ${verb} resource "${resource}" in API group "${groups[resource]}" in the namespace "${namespace}"`
  const details = { ...(name && { name }), group: groups[resource], kind: resource }
  const begin = `${kindOf(resource)}${name === undefined ? '' : ` "${name}"`} is forbidden`
  return failure(403, 'Forbidden', `${begin}: ${who} ${what}`, { details })
}

function send(response: ServerResponse, answer: object): void {
  const { code } = answer as Partial<Status>
  const created = 'uid' in ((answer as Partial<KubeObject>).metadata ?? {}) && response.req.method === 'POST'
  response.writeHead(code ?? (created ? 201 : 200), { 'content-type': 'application/json' })
  response.end(JSON.stringify(answer))
}

function misbehave(response: ServerResponse, fault: Exclude<Fault, 'lost'>): void {
  if (fault === 'silence') return
  if (fault === 'cut') {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write('{"kind":"JobList","apiVersion":"batch/v1","metadata":{},"items":[', () => response.destroy())
    return
  }
  if ('status' in fault) {
    send(response, failure(fault.status, 'InternalError', 'etcdserver: request timed out'))
  } else {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(fault.body)
  }
}
