/**
 * The requests to Kubernetes: create, list and delete Jobs, and list pods. The official client is large and most
 * installations do not need it, so it is loaded only when a runner is opened.
 */
import type * as Client from '@kubernetes/client-node'
import { Problem } from '../kernel/problem.ts'
import type { SettledKubernetes } from './settings.ts'

export type KubernetesApi = Awaited<ReturnType<typeof openKubernetesApi>>

export async function openKubernetesApi(settings: SettledKubernetes) {
  const client = await loadClient()
  const config = configOf(client, settings)
  const options = client.createConfiguration({
    baseServer: new client.ServerConfiguration(config.getCurrentCluster()!.server, {}),
    authMethods: { default: config },
    promiseMiddleware: [timingOut(settings.requestSeconds)],
  })
  const batch = new client.BatchV1Api(options)
  const core = new client.CoreV1Api(options)
  const { pageSize } = settings
  return {
    /** The default namespace of Jobs. */
    namespace: settings.namespace ?? config.getContextObject(config.currentContext)?.namespace ?? 'default',
    async createJob(namespace: string, body: Client.V1Job): Promise<void> {
      await asking(() =>
        batch.createNamespacedJob({ namespace, body, fieldManager: 'pawl', fieldValidation: 'Strict' }),
      )
    },
    async deleteJob(namespace: string, name: string): Promise<void> {
      // Deletes in the background: the response does not wait for the pods, which shut down in their own time.
      await asking(() => batch.deleteNamespacedJob({ namespace, name, propagationPolicy: 'Background' }))
    },
    jobs: (namespace: string, labelSelector: string) =>
      listed(pageSize, page => batch.listNamespacedJob({ namespace, labelSelector, ...page })),
    pods: (namespace: string, labelSelector: string) =>
      listed(pageSize, page => core.listNamespacedPod({ namespace, labelSelector, ...page })),
  }
}

export async function loadClient(name = '@kubernetes/client-node'): Promise<typeof Client> {
  try {
    return await import(name)
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new Problem('KUBERNETES_CLIENT_MISSING', {}, error)
  }
}

function configOf({ KubeConfig }: typeof Client, { kubeconfig }: SettledKubernetes): Client.KubeConfig {
  const config = new KubeConfig()
  try {
    if (kubeconfig === undefined) config.loadFromDefault()
    else config.loadFromFile(kubeconfig)
  } catch (error) {
    throw new Problem('FILE_INVALID', { file: kubeconfig ?? 'kubeconfig', why: (error as Error).message }, error)
  }
  const cluster = config.getCurrentCluster()
  // Without any configuration, the client invents a cluster on this machine.
  const isMadeUp = kubeconfig === undefined && config.currentContext === 'loaded-context'
  if (cluster === null || isMadeUp) {
    throw new Problem('FILE_INVALID', { file: kubeconfig ?? 'kubeconfig', why: 'it does not name a cluster' })
  }
  return config
}

/** The client has no timeout of its own, and a request that is never answered would block its chore forever. */
function timingOut(seconds: number): Client.Middleware {
  return {
    async pre(request) {
      request.setSignal(AbortSignal.timeout(seconds * 1000))
      return request
    },
    post: async response => response,
  }
}

interface Page<T> {
  readonly items: T[]
  readonly metadata?: { readonly _continue?: string }
}

/**
 * Returns a complete list or throws, because a partial one would make the missing objects look vanished. All pages show
 * the same moment. If that moment has expired before the next page (410), everything is listed again in one request. No
 * resourceVersion is given, so that the answer is current and not from a cache.
 */
async function listed<T>(
  limit: number,
  ask: (page: { limit?: number; _continue?: string }) => Promise<Page<T>>,
): Promise<T[]> {
  const items: T[] = []
  let next: string | undefined
  do {
    const page = await asking(() => ask({ limit, ...(next !== undefined && { _continue: next }) })).catch(error => {
      if (next === undefined || statusOf(error) !== 410) throw error
      items.length = 0
      return asking(() => ask({}))
    })
    if (!Array.isArray(page.items)) throw unreachable('its response is not a list')
    items.push(...page.items)
    next = page.metadata?._continue || undefined
  } while (next !== undefined)
  return items
}

async function asking<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw problemOf(error)
  }
}

/** The HTTP status of the response, or undefined if there was none. */
export function statusOf(error: unknown): number | undefined {
  return error instanceof Problem ? (error.details.status as number | undefined) : undefined
}

function problemOf(error: unknown): Problem {
  const { code, body, message } = error as { code?: unknown; body?: unknown; message?: string }
  if (typeof code !== 'number') return unreachable(message ?? String(error), error)
  const reason = sentenceOf(body) ?? message
  if (code === 429 || code >= 500) return unreachable(reason, error, code)
  return new Problem('KUBERNETES_REFUSED', { status: code, why: reason }, error)
}

function unreachable(why: unknown, cause?: unknown, status?: number): Problem {
  return new Problem('KUBERNETES_UNREACHABLE', { ...(status !== undefined && { status }), why }, cause)
}

/** Rejections are Status objects with a readable message, but a proxy may return anything. */
function sentenceOf(body: unknown): string | undefined {
  try {
    const { message } = (typeof body === 'string' ? JSON.parse(body) : body) as { message?: unknown }
    return typeof message === 'string' ? message : undefined
  } catch {
    return undefined
  }
}
