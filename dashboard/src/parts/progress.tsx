import { Progress as Bar, Group, Text } from '@mantine/core'
import type { Progress as Counts } from '../../../src/protocol/jobs/jobs.ts'

/** The progress of a stage or job: good, partial and bad tasks of the total. */
export function Progress({ of, wide = false }: { of: Counts; wide?: boolean }) {
  const share = (count: number) => (of.total === 0 ? 0 : (100 * count) / of.total)
  const label = `${of.good + of.bad} of ${of.total} ended, ${of.bad} bad`
  return (
    <Group gap="xs" wrap="nowrap" title={label} miw={wide ? 220 : 130}>
      <Bar.Root size="sm" flex={1} aria-label={label}>
        <Bar.Section value={share(of.good - of.partial)} color="teal" aria-label="good" />
        <Bar.Section value={share(of.partial)} color="yellow" aria-label="partial" />
        <Bar.Section value={share(of.bad)} color="red" aria-label="bad" />
      </Bar.Root>
      <Text size="xs" c="dimmed" className="figures">
        {of.good + of.bad}/{of.total}
      </Text>
    </Group>
  )
}
