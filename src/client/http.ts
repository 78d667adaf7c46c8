/** One request to a server. It is retried where that is safe; an error becomes the problem that the server names. */
import { Problem, type ProblemCode, problems, willPass } from '../kernel/problem.ts'

export interface Ask {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** Sent twice, it has no second effect, so it may be sent again when the answer was lost. */
  readonly repeatable: boolean
  /** How long to wait for the answer. */
  readonly seconds: number
  readonly signal: AbortSignal | undefined
}

export interface Link {
  readonly server: string
  readonly key: string | undefined
  /** How long to retry while the server cannot be reached. */
  readonly patienceSeconds: number
}

const firstPauseMs = 100
const longestPauseMs = 3000

/** The answer's body; undefined where there is none. */
export async function ask(link: Link, what: Ask): Promise<unknown> {
  const until = performance.now() + link.patienceSeconds * 1000
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    try {
      return await askOnce(link, what)
    } catch (error) {
      if (!willPass(error) || !what.repeatable || what.signal?.aborted || performance.now() + pauseMs > until)
        throw error
      // With jitter: not all clients at once when a server comes back.
      await pause(pauseMs * (0.5 + Math.random() / 2), what.signal)
    }
  }
}

/** Sleeps until the time is over or the signal aborts. Runs in browsers too, so without Node's timers. */
function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise(resolve => {
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal?.addEventListener('abort', end)
  })
}

async function askOnce({ server, key }: Link, { method, path, headers, body, seconds, signal }: Ask): Promise<unknown> {
  const late = AbortSignal.timeout(seconds * 1000)
  let text: string
  let response: Response
  try {
    response = await fetch(new URL(server.replace(/\/+$/, '') + path), {
      method,
      headers: {
        ...headers,
        accept: 'application/json',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
      },
      ...(body !== undefined && { body }),
      signal: signal === undefined ? late : AbortSignal.any([signal, late]),
    })
    text = await response.text()
  } catch (error) {
    const why = late.aborted ? `no answer in ${seconds} s` : reasonOf(error)
    throw new Problem('SERVER_UNREACHABLE', { server, why }, error)
  }
  const answer = parsed(text)
  if (response.ok) return answer
  throw problemIn(answer, response.status, server)
}

function parsed(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

function problemIn(answer: unknown, status: number, server: string): Error {
  const { code, details } = (answer ?? {}) as { code?: string; details?: Record<string, unknown> }
  if (code !== undefined && Object.hasOwn(problems, code)) return new Problem(code as ProblemCode, details)
  // The server failed, not the request: it may succeed the next time.
  if (status >= 500) {
    const request = details?.requestId === undefined ? '' : `, request id ${details.requestId}`
    return new Problem('SERVER_UNREACHABLE', { server, why: `HTTP ${status}${request}` })
  }
  return new Error(`The server answered ${status}: ${JSON.stringify(answer ?? null)}`)
}

/** The root cause of "fetch failed". */
function reasonOf(error: unknown): string {
  const { cause, message } = error as Error
  const inner = cause as (Error & { code?: string }) | undefined
  return inner?.code ?? inner?.message ?? message
}
