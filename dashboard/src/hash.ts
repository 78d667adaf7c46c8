/**
 * Keeps the current path and query behind the #. So the server needs to know no pages, URLs can be shared, and the
 * dashboard works under any path.
 */
import { useSyncExternalStore } from 'react'

const read = () => location.hash.slice(1) || '/'

function subscribe(onChange: () => void): () => void {
  addEventListener('hashchange', onChange)
  return () => removeEventListener('hashchange', onChange)
}

/** If `to` is only a query, the path stays. */
function navigate(to: string, { replace = false }: { replace?: boolean } = {}): void {
  const path = read().split('?')[0]!
  const next = `#${to.startsWith('?') ? path + (to === '?' ? '' : to) : to}`
  if (!replace) location.hash = next
  else {
    history.replaceState(null, '', next)
    dispatchEvent(new HashChangeEvent('hashchange'))
  }
}

export function useHashPath(): [string, typeof navigate] {
  return [useSyncExternalStore(subscribe, () => read().split('?')[0]!), navigate]
}

useHashPath.hrefs = (href: string) => `#${href}`

export function useHashSearch(): string {
  return useSyncExternalStore(subscribe, () => read().split('?')[1] ?? '')
}
