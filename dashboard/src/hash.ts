/**
 * Where one is stands behind the #, path and query: the server need not know of pages, and the address of one can be
 * sent to somebody, whatever the page is mounted under.
 */
import { useSyncExternalStore } from 'react'

const read = () => location.hash.slice(1) || '/'

function subscribe(onChange: () => void): () => void {
  addEventListener('hashchange', onChange)
  return () => removeEventListener('hashchange', onChange)
}

/** A `to` that is only a query keeps the page. */
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
