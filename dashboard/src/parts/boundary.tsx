/**
 * Keeps an error in one part from breaking the whole page. If a part could not be loaded, because the server was away
 * or was replaced by a newer one, the page reloads when the connection is back.
 */
import { Alert, Button } from '@mantine/core'
import { Component, type ReactNode } from 'react'
import { useLink } from '../live.tsx'

export function Boundary({ children }: { children: ReactNode }) {
  const link = useLink()
  return <Catch isLive={link === 'live'}>{children}</Catch>
}

/** Logs an error that a boundary caught, unless it is a failed load, which the browser has logged already. */
export function logCaught(error: unknown): void {
  if (!isNotLoaded(error)) console.error(error)
}

/** Recognizes failed loads of code or style sheets. Browsers and the bundler word them differently. */
const isNotLoaded = (error: unknown) =>
  /dynamically imported module|module script|preload CSS|importing a module/i.test(String(error))

class Catch extends Component<{ isLive: boolean; children: ReactNode }, { error?: unknown }> {
  override state: { error?: unknown } = {}

  static getDerivedStateFromError(error: unknown) {
    return { error }
  }

  override componentDidUpdate(before: { isLive: boolean }) {
    const { error } = this.state
    if (error !== undefined && isNotLoaded(error) && this.props.isLive && !before.isLive) location.reload()
  }

  override render() {
    const { error } = this.state
    if (error === undefined) return this.props.children
    return (
      <Alert color="red" variant="light" title="This part cannot be shown">
        {isNotLoaded(error) ? 'It could not be loaded. The page reloads when the connection is back.' : String(error)}
        <Button size="xs" variant="default" mt="sm" display="block" onClick={() => location.reload()}>
          Reload the page
        </Button>
      </Alert>
    )
  }
}
