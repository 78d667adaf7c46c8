/** The name of a page, for whoever reads it, hears it, or has it among many tabs. */
import { Title } from '@mantine/core'
import { useEffect, useRef } from 'react'
import { sanitize } from '../../../src/kernel/sanitize.ts'

let isFirst = true

/** Who goes to another page without seeing it hears where they are; who has begun with something there is left alone. */
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
