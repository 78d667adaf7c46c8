/** Counts change without an event of the job or stage itself, so it is read every two seconds until it has ended. */
import { isFinal, type Lifecycle } from '../../src/kernel/lifecycle.ts'

interface QueryWithState {
  readonly state: { readonly data?: { readonly state: string } | undefined }
}

export const refreshUntilEnded = (lifecycle: Lifecycle) => (query: QueryWithState) => {
  const { data } = query.state
  return data !== undefined && isFinal(lifecycle, data.state as never) ? false : 2000
}
