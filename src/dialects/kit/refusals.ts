/** Translates Pawl's problems into a dialect's errors, by a table of the differences. */
import { Problem, type ProblemCode } from '../../kernel/problem.ts'
import type { Fault } from '../dialect.ts'

/** Fields that are absent keep Pawl's value. */
export interface Rewording {
  readonly status?: number
  readonly code?: string
  readonly message?: string | ((details: Fault['details']) => string)
}

export type Rewordings = Readonly<Partial<Record<ProblemCode | 'BUG', Rewording>>>

export function reword(fault: Fault, table: Rewordings): Pick<Fault, 'status' | 'code' | 'message'> {
  const { status = fault.status, code = fault.code, message = fault.message } = rewordingOf(fault.code, table) ?? {}
  return { status, code, message: typeof message === 'string' ? message : message(fault.details) }
}

export function rewordingOf(code: string, table: Rewordings): Rewording | undefined {
  return Object.hasOwn(table, code) ? table[code as ProblemCode] : undefined
}

/** The same rewording for several problems. */
export function sameFor(codes: readonly ProblemCode[], rewording: Rewording): Rewordings {
  return Object.fromEntries(codes.map(code => [code, rewording]))
}

/** The result of `work`, or that of `otherwise` if one of these problems stopped it. */
export async function unlessProblem<Result>(
  codes: readonly ProblemCode[],
  work: () => Promise<Result>,
  otherwise: (problem: Problem) => Result | Promise<Result>,
): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Problem) || !codes.includes(error.code)) throw error
    return otherwise(error)
  }
}
