import { Text } from '@mantine/core'
import type { Page } from '../../../src/protocol/tasks/tasks.ts'

/** Says so where a list goes on behind the page that is shown. */
export function PageEnd({ page, items }: { page: Page<unknown> | undefined; items: 'queues' | 'workers' }) {
  if (page === undefined || page.next === null) return null
  return (
    <Text size="sm" c="dimmed" mt="xs">
      There are more than the first {page.items.length.toLocaleString()} {items} by name, and only these are shown here.
      “pawl {items.slice(0, -1)} list --cursor” shows the others.
    </Text>
  )
}
