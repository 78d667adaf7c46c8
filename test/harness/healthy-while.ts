/**
 * Watches a server of this process while it is attacked. The test file, the attack and the server share one event loop.
 *
 * How long a turn of that loop took on the clock says little on a machine that is busy with other work. How much processor
 * time the process spent in that turn does not depend on its neighbours, so that is what tests compare with a bound.
 */
import { request } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'

export interface Health<Answer> {
  /** The result of the attack. */
  readonly answer: Answer
  /** The most processor time that a single turn of the event loop took, in milliseconds. Compare this with a bound. */
  readonly longestTurnMs: number
  /** How many health checks were answered before the attack was over. At least one always was. */
  readonly checks: number
  /** The slowest health check on the clock, in milliseconds. For diagnostics only: it depends on the machine. */
  readonly slowestCheckMs: number
}

/**
 * Runs the attack, asks `/healthz` on connections of their own until the attack is over, and throws unless every answer
 * was 200. A health check is always under way while the attack runs.
 *
 * ```ts
 * const { answer, longestTurnMs } = await healthyWhile(server, () => request('/v1/tasks', { method: 'POST', body }))
 * assert.ok(longestTurnMs < 1000, `the event loop was blocked for ${longestTurnMs} ms`)
 * ```
 */
export async function healthyWhile<Answer>(
  server: { readonly url: string },
  attack: () => Promise<Answer>,
): Promise<Health<Answer>> {
  let isOver = false
  const attacking = attack().finally(() => {
    isOver = true
  })
  const checking = checkUntil(server.url, () => isOver)
  const turning = longestTurnUntil(() => isOver)
  // The attack may fail before the others are awaited.
  const [answer, checks, longestTurnMs] = await Promise.all([attacking, checking, turning])
  return { answer, longestTurnMs, ...checks }
}

async function checkUntil(url: string, isOver: () => boolean): Promise<{ checks: number; slowestCheckMs: number }> {
  let checks = 0
  let slowestCheckMs = 0
  do {
    const start = performance.now()
    const status = await checkHealth(url)
    if (status !== 200) throw new Error(`/healthz answered ${status} during the attack`)
    slowestCheckMs = Math.max(slowestCheckMs, performance.now() - start)
    checks += 1
  } while (!isOver())
  return { checks, slowestCheckMs: Math.round(slowestCheckMs) }
}

function checkHealth(url: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request(new URL('/healthz', url), { agent: false }, response => {
      response.resume()
      response.on('end', () => resolve(response.statusCode))
    })
    asked.on('error', reject)
    asked.end()
  })
}

async function longestTurnUntil(isOver: () => boolean): Promise<number> {
  let longest = 0
  let before = processorMs()
  do {
    await nextTurn()
    const now = processorMs()
    longest = Math.max(longest, now - before)
    before = now
  } while (!isOver())
  return Math.round(longest)
}

function processorMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
