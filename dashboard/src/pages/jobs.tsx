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
import { useStill } from '../parts/still.ts'
import { api } from '../server.ts'

/** What is looked for stands in the address, so that it can be sent to somebody. */
export function Jobs() {
  const [params, setParams] = useSearchParams()
  const states = params.getAll('state') as JobState[]
  const search = params.get('search') ?? ''
  const order = jobOrders.find(each => each === params.get('order')) ?? 'newest'
  const cursor = params.get('from') ?? undefined
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const question = ['jobs', states, search, order, cursor]
  const { data, error, isPlaceholderData } = useQuery({
    queryKey: question,
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
  if (data !== undefined && !isPlaceholderData) answered.current = JSON.stringify(question)
  const still = useStill(data?.items ?? [], answered.current)
  const put = (key: string, values: readonly string[]) =>
    setParams(old => {
      const next = new URLSearchParams(old)
      next.delete(key)
      next.delete('from')
      for (const value of values) if (value !== '') next.append(key, value)
      return next
    })
  const box = useRef<HTMLInputElement>(null)
  // Who goes back, or comes here anew, sees what is looked for now; who types is not interrupted.
  useEffect(() => {
    if (box.current !== null && box.current !== document.activeElement) box.current.value = search
  }, [search])
  const lookFor = useDebouncedCallback((text: string) => put('search', [text]), 250)
  const sort = (by: JobOrder) => put('order', by === 'newest' ? [] : [by])
  return (
    <Stack>
      <Heading>Jobs</Heading>
      <Group align="end">
        <TextInput
          label="Search"
          placeholder="name, id or correlation"
          type="search"
          ref={box}
          defaultValue={search}
          onChange={event => lookFor(event.currentTarget.value)}
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
        <BulkActions jobs={still.items.filter(({ id }) => chosen.has(id))} onDone={() => setChosen(new Set())} />
      </Group>
      {error && data === undefined && <Fault error={error} />}
      {/* Its place is kept, lest the list moves when it comes. */}
      <Group h={30}>
        {data?.total !== undefined && (
          <Text size="sm" c="dimmed">
            {data.total.toLocaleString()} {data.total === 1 ? 'job' : 'jobs'}
          </Text>
        )}
        {still.waiting > 0 && (
          <Button size="xs" variant="light" onClick={still.showNow}>
            {still.waiting} more or fewer: show
          </Button>
        )}
      </Group>
      <div {...still.watch}>
        <JobTable jobs={still.items} order={order} onSort={sort} chosen={chosen} onChoose={setChosen} />
      </div>
      {data?.items.length === 0 && <Text c="dimmed">No job is like that.</Text>}
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
