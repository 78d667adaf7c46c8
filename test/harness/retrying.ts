/** An engine that repeats what the store was too busy for, as clients over HTTP do. */
import type { Engine } from '../../src/engine/engine.ts'
import { Problem } from '../../src/kernel/problem.ts'

const mostTries = 20

type Call = (...args: unknown[]) => unknown

/** STORE_BUSY says that nothing was changed, so every request can be sent again. */
export function retryingWhenBusy(engine: Engine): Engine {
  const get = (target: Engine, name: string | symbol) => {
    const value: unknown = Reflect.get(target, name)
    return typeof value === 'function' ? (...args: unknown[]) => attempt(() => (value as Call)(...args)) : value
  }
  return new Proxy(engine, { get })
}

function attempt(call: () => unknown, triesLeft = mostTries): unknown {
  const result = call()
  if (!(result instanceof Promise)) return result
  return result.catch(error => {
    if (triesLeft === 1 || !(error instanceof Problem) || error.code !== 'STORE_BUSY') throw error
    return attempt(call, triesLeft - 1)
  })
}
