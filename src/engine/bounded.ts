import { runInNewContext } from 'node:vm'

/** What a piece of work gave; undefined: it took longer, and was stopped. For what strangers wrote, such as a pattern. */
export function withinMs<T>(ms: number, work: () => T): { readonly result: T } | undefined {
  try {
    return { result: runInNewContext('work()', { work }, { timeout: ms }) as T }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return undefined
    throw error
  }
}
