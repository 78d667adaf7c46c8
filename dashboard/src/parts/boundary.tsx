/**
 * Keeps a part that cannot be shown from taking the rest with it. A part that could not be loaded, because the server was
 * away or has been replaced by a newer one, comes with the page when there is a connection again.
 */
import { Alert, Button } from '@mantine/core'
import { Component, type ReactNode } from 'react'
import { useLink } from '../live.tsx'

export function Boundary({ children }: { children: ReactNode }) {
  const link = useLink()
  return <Catch isLive={link === 'live'}>{children}</Catch>
}

/** What a boundary caught, for the console. A part that was not loaded has been told by the browser, and is loaded again. */
export function tell(error: unknown): void {
  if (!isNotLoaded(error)) console.error(error)
}

/** Code or a style sheet of it; browsers and the bundler each have their words. */
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
        {isNotLoaded(error) ? 'It could not be loaded. It is when there is a connection again.' : String(error)}
        <Button size="xs" variant="default" mt="sm" display="block" onClick={() => location.reload()}>
          Load the page again
        </Button>
      </Alert>
    )
  }
}
