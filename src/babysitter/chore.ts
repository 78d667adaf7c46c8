import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from '../engine/context.ts'
import type { WakeSignal } from '../engine/wake.ts'

/** Something to look after, again and again. It may run in many processes at once, and may die at any point. */
export interface Chore {
  readonly name: string
  readonly everySeconds: number
  /** Rung when there is something to do before that. */
  bell?(context: Context): WakeSignal
  /** One look. What it did goes to the log; `more: true` asks to look again at once. */
  run(context: Context): Promise<Record<string, unknown> & { more?: boolean }>
}

/** Does one chore until told to stop. A round that fails is logged and tried again; it never ends the loop. */
export async function keepDoing(chore: Chore, context: Context, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    let waitSeconds = chore.everySeconds
    const rung = chore.bell?.(context).next() ?? new Promise(() => {})
    const end = context.activities.begin(`chore ${chore.name}`)
    try {
      const did = await chore.run(context)
      if (did.more === true) waitSeconds = 0
      const isNews = Object.values(did).some(value => value !== 0 && value !== false)
      if (isNews) context.log('chore.done', { chore: chore.name, ...did })
    } catch (error) {
      context.log('chore.failed', { chore: chore.name, error: String(error) })
    } finally {
      end()
    }
    // Spread out, so that babysitters started together do not stay in step; but never later than promised.
    const spread = 0.5 + Math.random() / 2
    const awake = new AbortController()
    const asleep = sleep(waitSeconds * 1000 * spread, undefined, { signal: AbortSignal.any([signal, awake.signal]) })
    await Promise.race([asleep.catch(() => {}), rung])
    awake.abort()
  }
}
