import { Button, Group, MultiSelect, Stack, Text, TextInput } from '@mantine/core'
import { useDebouncedCallback } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { useSearchParams } from 'wouter'
import { type JobState, jobLifecycle } from '../../../src/kernel/job.ts'
import { statesOf } from '../../../src/kernel/lifecycle.ts'
import { type JobOrder, jobOrders } from '../../../src/protocol/jobs/jobs.ts'
import { BulkActions } from '../parts/bulk-actions.tsx'
import { Fault } from '../parts/fault.tsx'
import { Heading } from '../parts/heading.tsx'
import { JobTable } from '../parts/job-table.tsx'
import { useStableRows } from '../parts/stable-rows.ts'
import { api } from '../server.ts'

/** The search is part of the URL, so that it can be shared. */
export function Jobs() {
  const [params, setParams] = useSearchParams()
  const states = params.getAll('state') as JobState[]
  const search = params.get('search') ?? ''
  const order = jobOrders.find(each => each === params.get('order')) ?? 'newest'
  const cursor = params.get('from') ?? undefined
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const queryKey = ['jobs', states, search, order, cursor]
  const { data, error, isPlaceholderData } = useQuery({
    queryKey,
    queryFn: () =>
      api.jobs({
        limit: 50,
        order,
        total: true,
        ...(states.length > 0 && { state: states }),
        ...(search !== '' && { search }),
        ...(cursor !== undefined && { cursor }),
      }),
    placeholderData: keepPreviousData,
    refetchInterval: 3000,
  })
  const answered = useRef('')
  if (data !== undefined && !isPlaceholderData) answered.current = JSON.stringify(queryKey)
  const rows = useStableRows(data?.items ?? [], answered.current)
  const put = (key: string, values: readonly string[]) =>
    setParams(old => {
      const next = new URLSearchParams(old)
      next.delete(key)
      next.delete('from')
      for (const value of values) if (value !== '') next.append(key, value)
      return next
    })
  const box = useRef<HTMLInputElement>(null)
  // Show the search of the URL after navigation, but do not overwrite the box while the user is typing.
  useEffect(() => {
    if (box.current !== null && box.current !== document.activeElement) box.current.value = search
  }, [search])
  const searchFor = useDebouncedCallback((text: string) => put('search', [text]), 250)
  const sort = (by: JobOrder) => put('order', by === 'newest' ? [] : [by])
  return (
    <Stack>
      <Heading>Jobs</Heading>
      <Group align="end">
        <TextInput
          label="Search"
          placeholder="name, id or correlation id"
          type="search"
          ref={box}
          defaultValue={search}
          onChange={event => searchFor(event.currentTarget.value)}
          w={240}
        />
        <MultiSelect
          label="State"
          data={statesOf(jobLifecycle)}
          value={states}
          onChange={value => put('state', value)}
          clearable
          w={320}
        />
        <BulkActions jobs={rows.items.filter(({ id }) => selected.has(id))} onDone={() => setSelected(new Set())} />
      </Group>
      {error && data === undefined && <Fault error={error} />}
      {/* This height is reserved, so that the list does not move when the count appears. */}
      <Group h={30}>
        {data?.total !== undefined && (
          <Text size="sm" c="dimmed">
            {data.total.toLocaleString()} {data.total === 1 ? 'job' : 'jobs'}
          </Text>
        )}
        {rows.pending > 0 && (
          <Button size="xs" variant="light" onClick={rows.showNow}>
            Show {rows.pending} {rows.pending === 1 ? 'change' : 'changes'}
          </Button>
        )}
      </Group>
      <div {...rows.pointerHandlers}>
        <JobTable jobs={rows.items} order={order} onSort={sort} selected={selected} onSelect={setSelected} />
      </div>
      {data?.items.length === 0 && <Text c="dimmed">No jobs found.</Text>}
      <Group>
        {cursor !== undefined && (
          <Button size="xs" variant="default" onClick={() => put('from', [])}>
            First page
          </Button>
        )}
        {data?.next && (
          <Button size="xs" variant="default" onClick={() => put('from', [data.next!])}>
            Next page
          </Button>
        )}
      </Group>
    </Stack>
  )
}
