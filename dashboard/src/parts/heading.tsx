/** The name of a page, for whoever reads it, hears it, or has it among many tabs. */
import { Title } from '@mantine/core'
import { useEffect } from 'react'
import { harmless } from '../../../src/kernel/harmless.ts'

export function Heading({ children: text }: { children: string }) {
  const shown = harmless(text)
  useEffect(() => {
    document.title = `${shown} · Pawl`
    return () => {
      document.title = 'Pawl'
    }
  }, [shown])
  return (
    <Title order={1} size="h3">
      {shown}
    </Title>
  )
}
