import type { QueueView, WorkerView } from '../../protocol/admin/operate.ts'
import { callFlags, callOf, pageFlags, said } from '../asking.ts'
import { apiCommand } from '../command.ts'
import { relative, span } from '../moments.ts'
import { type Column, listed } from '../table.ts'

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
  summary: 'List queues and their depths.',
  flags: pageFlags,
  async run({ api, flags }) {
    const page = await api.queues(said({ limit: flags.limit, cursor: flags.cursor }))
    return listed(page, queueColumns, 'There is nothing in any queue.')
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

export const workerLost = apiCommand({
  name: 'worker lost',
  summary: 'Declare a worker dead: its tasks are requeued at once, and its later reports are refused.',
  more: `For workers that send no heartbeats, such as those of Falconeri: their silence proves nothing, so their leases are long.
Run this when you know that a worker has died. NAME is what \`pawl worker list\` shows, or the pod of a worker called NODE/POD.`,
  takes: { name: 'the worker, or its pod' },
  flags: callFlags,
  async run({ api, args, flags }) {
    const lost = await api.loseWorker(args.name, callOf(flags))
    const count = lost.tasks.length
    const told = count === 0 ? 'it held no task' : count === 1 ? '1 task comes back' : `${count} tasks come back`
    return { data: lost, show: () => [`${lost.worker} is lost: ${told}.`] }
  },
})

export const workerList = apiCommand({
  name: 'worker list',
  summary: 'List workers that reported recently.',
  flags: {
    within: { kind: 'number', value: 'SECONDS', summary: 'only workers that reported within this time; default: 60' },
    ...pageFlags,
  },
  async run({ api, flags: { within: withinSeconds, limit, cursor } }) {
    const page = await api.workers(said({ withinSeconds, limit, cursor }))
    return listed(page, workerColumns, 'No worker was heard of.')
  },
})
