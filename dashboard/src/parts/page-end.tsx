import { Text } from '@mantine/core'
import type { Page } from '../../../src/protocol/tasks/tasks.ts'

/** Says that a list is longer than the page shown. */
export function PageEnd({ page, items }: { page: Page<unknown> | undefined; items: 'queues' | 'workers' }) {
  if (page === undefined || page.next === null) return null
  return (
    <Text size="sm" c="dimmed" mt="xs">
      Only the first {page.items.length.toLocaleString()} {items} by name are shown. “pawl {items.slice(0, -1)} list
      --cursor” lists the others.
    </Text>
  )
}
