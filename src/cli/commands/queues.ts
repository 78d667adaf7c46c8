import type { QueueView, WorkerView } from '../../protocol/operations.ts'
import { apiCommand } from '../command.ts'
import { relative, span } from '../moments.ts'
import { type Column, table } from '../table.ts'

const queueColumns: readonly Column<QueueView>[] = [
  { head: 'QUEUE', of: ({ queue }) => queue },
  { head: 'DUE', of: ({ due }) => String(due), align: 'right' },
  { head: 'LATER', of: ({ scheduled }) => String(scheduled), align: 'right' },
  { head: 'IN HAND', of: ({ held }) => String(held), align: 'right' },
  {
    head: 'OLDEST',
    of: ({ oldestSeconds }) => (oldestSeconds === null ? '' : span(oldestSeconds)),
    align: 'right',
    spare: true,
  },
]

export const queueList = apiCommand({
  name: 'queue list',
  says: 'Show how deep each queue is.',
  async run({ api }) {
    const queues = await api.queues()
    const show = ({ width }: { width: number }) =>
      queues.length === 0 ? ['There is nothing in any queue.'] : table(queues, queueColumns, width)
    return { data: queues, show }
  },
})

const workerColumns: readonly Column<WorkerView>[] = [
  { head: 'WORKER', of: ({ worker }) => worker },
  { head: 'QUEUES', of: ({ queues }) => queues.join(', ') },
  { head: 'HOLDS', of: ({ leases }) => `${leases}`, align: 'right' },
  { head: 'SLOTS', of: ({ slots }) => (slots === null ? '–' : `${slots}`), align: 'right', spare: true },
  { head: 'STARTED', of: ({ startedAt }) => relative(startedAt), align: 'right', spare: true },
  { head: 'SEEN', of: ({ seenAt }) => relative(seenAt), align: 'right', spare: true },
]

export const workerList = apiCommand({
  name: 'worker list',
  says: 'List workers that were heard of lately.',
  flags: { within: { kind: 'number', value: 'SECONDS', says: 'how lately; default 60' } },
  async run({ api, flags }) {
    const workers = await api.workers(flags.within === undefined ? {} : { withinSeconds: flags.within })
    const show = ({ width }: { width: number }) =>
      workers.length === 0 ? ['No worker was heard of.'] : table(workers, workerColumns, width)
    return { data: workers, show }
  },
})
