/** The latest changes of jobs and stages, live. */
import { Badge, Group, Paper, Text, Title } from '@mantine/core'
import { Link } from 'wouter'
import { sanitize } from '../../../src/kernel/sanitize.ts'
import type { EventView } from '../../../src/protocol/tasks/tasks.ts'
import { useLiveEvents } from '../live.tsx'
import { useStableRows } from './stable-rows.ts'
import { type Entity, State } from './state.tsx'
import { Ago } from './when.tsx'

const shown = 30

export function LiveEvents() {
  const rows = useStableRows(useLiveEvents().slice(0, shown))
  return (
    <Paper withBorder p="sm">
      <Group justify="space-between" mb="xs">
        <Title order={2} size="h5">
          Live events
        </Title>
        {rows.pending > 0 && (
          <Badge component="button" variant="light" onClick={rows.showNow} className="state">
            Show new events
          </Badge>
        )}
      </Group>
      {rows.items.length === 0 ? (
        <Text size="sm" c="dimmed">
          No events since this page was opened.
        </Text>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard.
        <section className="live-events" aria-label="Live events" tabIndex={0} {...rows.pointerHandlers}>
          {rows.items.map(event => (
            <LiveEvent key={event.id} event={event} />
          ))}
        </section>
      )}
    </Paper>
  )
}

function LiveEvent({ event: { id, entity, entityId, type, to, ts, actor } }: { event: EventView }) {
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
