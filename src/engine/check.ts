/** What comes in is checked before anything is written: options by a table of fields, JSON by what PostgreSQL can keep. */
import { Problem, type ProblemCode } from '../kernel/problem.ts'

export * from '../kernel/check.ts'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export function isId(id: unknown): id is string {
  return typeof id === 'string' && uuid.test(id)
}

export function checkId(id: unknown, problem: ProblemCode = 'TASK_NOT_FOUND'): string {
  if (!isId(id)) throw new Problem(problem, { id: String(id) })
  return id.toLowerCase()
}

const maxDepth = 100

/** JSON text that PostgreSQL can keep, or a problem that says why not. */
export function checkedJson(value: unknown, maxBytes: number, where: string): string {
  const refuse = (why: string) => new Problem('PAYLOAD_INVALID', { at: where, why })
  let made: string | undefined
  try {
    made = JSON.stringify(value ?? null)
  } catch (error) {
    throw refuse((error as Error).message.split('\n')[0]!)
  }
  if (made === undefined) throw refuse(`a ${typeof value} is not JSON`)
  if (made.length > maxBytes || Buffer.byteLength(made) > maxBytes) {
    throw new Problem('PAYLOAD_TOO_LARGE', { at: where, bytes: Buffer.byteLength(made), limit: maxBytes })
  }
  if (made.includes('\\u') && /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/i.test(made)) {
    throw refuse('it holds a NUL or half of a surrogate pair')
  }
  if (made.length > 2 * maxDepth && depthOf(made) > maxDepth) throw refuse(`it is more than ${maxDepth} levels deep`)
  return made
}

function depthOf(made: string): number {
  let depth = 0
  let deepest = 0
  for (const [mark] of made.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/g)) {
    if (mark === '[' || mark === '{') deepest = Math.max(deepest, ++depth)
    else if (mark === ']' || mark === '}') depth -= 1
  }
  return deepest
}
