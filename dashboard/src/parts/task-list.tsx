/** A list of up to hundreds of thousands of tasks: only visible rows are drawn, and only their pages are read. */
import { Group, Text } from '@mantine/core'
import { useThrottledValue } from '@mantine/hooks'
import { useQueries } from '@tanstack/react-query'
import { useVirtualizer } from '@tanstack/react-virtual'
import { memo, useRef } from 'react'
import { Link } from 'wouter'
import { sanitize } from '../../../src/kernel/sanitize.ts'
import type { Page, TaskView } from '../../../src/protocol/tasks/tasks.ts'
import { wholePage } from '../whole-page.ts'
import { Fault } from './fault.tsx'
import { State } from './state.tsx'
import { Ago } from './when.tsx'

const rowHeight = 38
const pageSize = 100

export interface TaskSource {
  readonly key: readonly unknown[]
  readonly total: number
  /** Oldest first, so that new tasks appear at the end and move nothing. */
  read(page: { limit: number; offset?: number; cursor?: string; order: 'oldest' }): Promise<Page<TaskView>>
}

export function TaskList({ source, height = 560 }: { source: TaskSource; height?: number }) {
  const scroller = useRef<HTMLDivElement>(null)
  const rows = useVirtualizer({
    count: source.total,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 12,
  })
  const seen = rows.getVirtualItems()
  const near = [...new Set(seen.map(({ index }) => Math.floor(index / pageSize)))].join()
  // Pages that are scrolled past quickly are not read.
  const pages = useThrottledValue(near, 100).split(',').filter(Boolean).map(Number)
  const read = useQueries({
    queries: pages.map(page => ({
      queryKey: ['tasks', ...source.key, page],
      queryFn: () =>
        wholePage(asked => source.read({ ...asked, order: 'oldest' }), { limit: pageSize, offset: page * pageSize }),
      refetchInterval: 2000,
      gcTime: 10_000,
    })),
  })
  const fault = read.every(({ data }) => data === undefined)
    ? read.find(({ error }) => error !== null)?.error
    : undefined
  const taskAt = (index: number) => read[pages.indexOf(Math.floor(index / pageSize))]?.data?.items[index % pageSize]
  if (fault) return <Fault error={fault} />
  if (source.total === 0) return <Text c="dimmed">No tasks.</Text>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard.
    <section ref={scroller} className="scroller" style={{ height }} tabIndex={0} aria-label="Tasks">
      <div style={{ height: rows.getTotalSize(), position: 'relative' }}>
        {seen.map(({ index, start }) => (
          <div key={index} className="row" style={{ height: rowHeight, transform: `translateY(${start}px)` }}>
            <TaskRow index={index} task={taskAt(index)} />
          </div>
        ))}
      </div>
    </section>
  )
}

/** Rendered again only when its task has changed, to keep scrolling smooth. */
const TaskRow = memo(function TaskRow({ index, task }: { index: number; task: TaskView | undefined }) {
  return (
    <Group wrap="nowrap" h="100%" px="xs" gap="md">
      <Text size="sm" c="dimmed" className="figures" w={64} visibleFrom="sm">
        {(index + 1).toLocaleString()}
      </Text>
      {task !== undefined && <Row task={task} />}
    </Group>
  )
})

function Row({ task }: { task: TaskView }) {
  return (
    <>
      <Link href={`/tasks/${task.id}`} className="short-id">
        {task.id.slice(-8)}
      </Link>
      <div style={{ width: 120, flexShrink: 0 }}>
        <State of="task" state={task.state} />
      </div>
      <Text size="sm" truncate flex={1} c="dimmed">
        {sanitize(task.error?.message ?? JSON.stringify(task.payload) ?? '').slice(0, 200)}
      </Text>
      <Text size="sm" className="figures" visibleFrom="sm">
        {task.epoch > 0 && `attempt ${task.epoch}`}
      </Text>
      <Text size="sm" className="figures" w={90}>
        <Ago at={task.changedAt} />
      </Text>
    </>
  )
}
