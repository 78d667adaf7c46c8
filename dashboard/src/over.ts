/** While a thing has not ended, its counts change without an event of its own: it is read again every two seconds. */
import { isFinal, type Lifecycle } from '../../src/kernel/lifecycle.ts'

interface Asked {
  readonly state: { readonly data?: { readonly state: string } | undefined }
}

export const untilOver = (lifecycle: Lifecycle) => (query: Asked) => {
  const { data } = query.state
  return data !== undefined && isFinal(lifecycle, data.state as never) ? false : 2000
}
