import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from '../engine/context.ts'
import type { WakeSignal } from '../engine/wake.ts'

/** A repeated maintenance job. It may run in many processes at once, and may die at any point. */
export interface Chore {
  readonly name: string
  readonly everySeconds: number
  /** Starts the next run early when there is work. */
  bell?(context: Context): WakeSignal
  /** One run. The result is logged; `more: true` asks for another run at once. */
  run(context: Context): Promise<Record<string, unknown> & { more?: boolean }>
}

/** Repeats one chore until the signal aborts. A run that fails is logged and tried again; it never ends the loop. */
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
    // Random intervals keep babysitters that started together from running in step. They are never longer than
    // promised.
    const spread = 0.5 + Math.random() / 2
    const awake = new AbortController()
    const asleep = sleep(waitSeconds * 1000 * spread, undefined, { signal: AbortSignal.any([signal, awake.signal]) })
    await Promise.race([asleep.catch(() => {}), rung])
    awake.abort()
  }
}
