import { withoutUndefined } from '../../kernel/without-undefined.ts'
import type { QueueView, WorkerView } from '../../protocol/admin/admin.ts'
import { apiCommand } from '../command.ts'
import { counted } from '../counted.ts'
import { formatDuration, relativeTime } from '../durations.ts'
import { controlOptions, historyFlags, pageFlags } from '../shared-flags.ts'
import { type Column, pageResult } from '../table.ts'

const queueColumns: readonly Column<QueueView>[] = [
  { header: 'QUEUE', value: ({ queue }) => queue },
  { header: 'DUE', value: ({ due }) => String(due), align: 'right' },
  { header: 'SCHEDULED', value: ({ scheduled }) => String(scheduled), align: 'right' },
  { header: 'HELD', value: ({ held }) => String(held), align: 'right' },
  {
    header: 'OLDEST',
    value: ({ oldestSeconds }) => (oldestSeconds === null ? '' : formatDuration(oldestSeconds)),
    align: 'right',
    optional: true,
  },
]

export const queueList = apiCommand({
  name: 'queue list',
  summary: 'List queues and their depths.',
  flags: pageFlags,
  async run({ api, flags }) {
    const page = await api.queues(withoutUndefined({ limit: flags.limit, cursor: flags.cursor }))
    return pageResult(page, queueColumns, 'All queues are empty.')
  },
})

const workerColumns: readonly Column<WorkerView>[] = [
  { header: 'WORKER', value: ({ worker }) => worker },
  { header: 'QUEUES', value: ({ queues }) => queues.join(', ') },
  { header: 'TASKS', value: ({ leases }) => `${leases}`, align: 'right' },
  { header: 'SLOTS', value: ({ slots }) => (slots === null ? '–' : `${slots}`), align: 'right', optional: true },
  { header: 'STARTED', value: ({ startedAt }) => relativeTime(startedAt), align: 'right', optional: true },
  { header: 'LAST SEEN', value: ({ seenAt }) => relativeTime(seenAt), align: 'right', optional: true },
]

export const workerLost = apiCommand({
  name: 'worker lost',
  summary: 'Declare a worker dead: its tasks are requeued at once, and its later reports are refused.',
  details: `For workers that send no heartbeats, such as those of Falconeri. Their leases are long, because Pawl cannot detect that
one has died. Run this command when you know it. NAME is a name from \`pawl worker list\`, or the pod of a worker NODE/POD.`,
  parameters: { name: 'the name of the worker, or its pod' },
  completes: 'worker',
  flags: historyFlags,
  async run({ api, args, flags }) {
    const lost = await api.loseWorker(args.name, controlOptions(flags))
    const count = lost.tasks.length
    const verb = count === 1 ? 'was' : 'were'
    const tasks = count === 0 ? 'It held no tasks' : `${counted(count, 'task')} ${verb} requeued`
    return { data: lost, show: () => [`Worker ${lost.worker} is lost. ${tasks}.`] }
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
    const page = await api.workers(withoutUndefined({ withinSeconds, limit, cursor }))
    return pageResult(page, workerColumns, 'No worker has reported recently.')
  },
})
