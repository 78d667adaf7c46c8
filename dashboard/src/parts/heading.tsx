/** The heading of a page, which is also the title of the tab and is announced by screen readers. */
import { Title } from '@mantine/core'
import { useEffect, useRef } from 'react'
import { sanitize } from '../../../src/kernel/sanitize.ts'

let isFirst = true

/** Focuses the heading after navigation, so that screen readers announce the page, unless another element has the focus. */
function useArrival() {
  const place = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    const at = document.activeElement
    if (!isFirst && (at === document.body || at?.closest('nav'))) place.current?.focus({ preventScroll: true })
    isFirst = false
  }, [])
  return place
}

export function Heading({ children: text }: { children: string }) {
  const shown = sanitize(text)
  const place = useArrival()
  useEffect(() => {
    document.title = `${shown} · Pawl`
    return () => {
      document.title = 'Pawl'
    }
  }, [shown])
  return (
    <Title order={1} size="h3" ref={place} tabIndex={-1} className="arrival">
      {shown}
    </Title>
  )
}
