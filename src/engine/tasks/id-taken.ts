/** Ids that callers choose: the primary keys decide whether they are free. */
import { Problem } from '../../kernel/problem.ts'

const keys = ['task_pkey', 'job_pkey', 'chosen_id_pkey']

/** The problem behind an error of the store's, if somebody has the id already; another error stays what it is. */
export function idTaken(error: unknown): never {
  const { constraint = '', detail } = error as { constraint?: string; detail?: string }
  if (!keys.includes(constraint)) throw error
  const [, id] = /\(id\)=\((.*?)\)/.exec(detail ?? '') ?? []
  throw new Problem('ID_TAKEN', id === undefined ? {} : { id }, error)
}
