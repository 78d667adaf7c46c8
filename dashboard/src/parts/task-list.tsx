/** Tasks by the thousand: only those that are seen are drawn, and more are read as one comes near the end. */
import { Group, Text } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useRef } from 'react'
import { Link } from 'wouter'
import { harmless } from '../../../src/kernel/harmless.ts'
import type { TaskState } from '../../../src/kernel/task.ts'
import type { Page, TaskView } from '../../../src/protocol/tasks.ts'
import { Fault } from './fault.tsx'
import { State } from './state.tsx'
import { Ago } from './when.tsx'

const rowHeight = 38
const pageSize = 200

export interface TaskSource {
  readonly key: readonly unknown[]
  read(query: { limit: number; cursor?: string }): Promise<Page<TaskView>>
}

export function TaskList({ source, height = 560 }: { source: TaskSource; height?: number }) {
  const scroller = useRef<HTMLDivElement>(null)
  const { data, error, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery({
    queryKey: ['tasks', ...source.key],
    queryFn: ({ pageParam }) => source.read({ limit: pageSize, ...(pageParam !== undefined && { cursor: pageParam }) }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: page => page.next ?? undefined,
  })
  const tasks = data?.pages.flatMap(({ items }) => items) ?? []
  const rows = useVirtualizer({
    count: tasks.length + (hasNextPage ? 1 : 0),
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 12,
  })
  const seen = rows.getVirtualItems()
  const last = seen.at(-1)?.index ?? 0
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage && last >= tasks.length - 50) void fetchNextPage()
  }, [last, tasks.length, hasNextPage, isFetchingNextPage, fetchNextPage])
  if (error) return <Fault error={error} />
  if (data !== undefined && tasks.length === 0) return <Text c="dimmed">There are none.</Text>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard.
    <section ref={scroller} className="scroller" style={{ height }} tabIndex={0} aria-label="Tasks">
      <div style={{ height: rows.getTotalSize(), position: 'relative' }}>
        {seen.map(({ index, start }) => {
          const task = tasks[index]
          return (
            <div
              key={index}
              className="row"
              style={{
                position: 'absolute',
                top: 0,
                left: 0,
                right: 0,
                height: rowHeight,
                transform: `translateY(${start}px)`,
              }}
            >
              {task === undefined ? <Text p="xs">…</Text> : <TaskRow task={task} />}
            </div>
          )
        })}
      </div>
    </section>
  )
}

function TaskRow({ task }: { task: TaskView }) {
  return (
    <Group wrap="nowrap" h="100%" px="xs" gap="md">
      <Link href={`/tasks/${task.id}`} className="figures">
        {task.id.slice(-8)}
      </Link>
      <div style={{ width: 120, flexShrink: 0 }}>
        <State of="task" state={task.state as TaskState} />
      </div>
      <Text size="sm" truncate flex={1} c="dimmed">
        {harmless(task.error?.message ?? JSON.stringify(task.payload) ?? '').slice(0, 200)}
      </Text>
      <Text size="sm" className="figures" visibleFrom="sm">
        {task.epoch > 0 && `attempt ${task.epoch}`}
      </Text>
      <Text size="sm" className="figures" w={90}>
        <Ago at={task.changedAt} />
      </Text>
    </Group>
  )
}
