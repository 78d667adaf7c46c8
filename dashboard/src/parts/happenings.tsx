/** What happens, as it happens: each change of a job or a stage, once. */
import { Badge, Group, Paper, Text, Title } from '@mantine/core'
import { Link } from 'wouter'
import { sanitize } from '../../../src/kernel/sanitize.ts'
import type { EventView } from '../../../src/protocol/tasks/tasks.ts'
import { useHappenings } from '../live.tsx'
import { type Entity, State } from './state.tsx'
import { useStill } from './still.ts'
import { Ago } from './when.tsx'

const shown = 30

export function Happenings() {
  const still = useStill(useHappenings().slice(0, shown))
  return (
    <Paper withBorder p="sm">
      <Group justify="space-between" mb="xs">
        <Title order={2} size="h5">
          What happens
        </Title>
        {still.waiting > 0 && (
          <Badge component="button" variant="light" onClick={still.showNow} className="state">
            more: show
          </Badge>
        )}
      </Group>
      {still.items.length === 0 ? (
        <Text size="sm" c="dimmed">
          Nothing since this page was opened.
        </Text>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard.
        <section className="happenings" aria-label="What happens" tabIndex={0} {...still.watch}>
          {still.items.map(event => (
            <Happening key={event.id} event={event} />
          ))}
        </section>
      )}
    </Paper>
  )
}

function Happening({ event: { id, entity, entityId, type, to, ts, actor } }: { event: EventView }) {
  return (
    <Group gap="sm" wrap="nowrap" mih={28} data-event={id}>
      <Link href={`/${entity}s/${entityId}`} className="short-id">
        {entityId.slice(-8)}
      </Link>
      <Text size="sm" w={48}>
        {entity}
      </Text>
      {type === `${entity}.${to}` ? <State of={entity as Entity} state={to} /> : <Text size="sm">{type}</Text>}
      <Text size="xs" c="dimmed" truncate flex={1}>
        {sanitize(actor)}
      </Text>
      <Text size="xs" c="dimmed" className="figures">
        <Ago at={ts} />
      </Text>
    </Group>
  )
}
