import { type Call, namedPageFields, type PageQuery } from '../call-options.ts'
import { control, page, pageOf, post, read } from '../operation.ts'
import { list, object, ref, text } from '../shapes.ts'
import { taskTypeRecordFields } from '../tasks/new-task.ts'
import {
  type FeedPage,
  type FeedQuery,
  feedFields,
  type NamedTaskType,
  type Page,
  type TaskTypeRecord,
} from '../tasks/tasks.ts'
import {
  type Examination,
  type KeyView,
  keyFields,
  type MadeKey,
  type NewKey,
  type QueueView,
  type TaskTypeQuery,
  taskTypeQueryFields,
} from './admin.ts'
import { type StatsQuery, type StatsView, statsQueryFields } from './stats.ts'

export const adminOperations = {
  /** Sets how tasks of a type are leased, retried and kept. */
  putTaskType: post<(type: string, options: TaskTypeRecord) => Promise<void>>(
    '/v1/task-types/{id}',
    'teach',
    ['id', 'body'],
    {
      method: 'PUT',
      summary: 'Set how tasks of a type are leased, retried and kept.',
      body: taskTypeRecordFields,
      status: 204,
      queues: 'type',
    },
  ),
  /** Lists the types that have settings, by name. */
  taskTypes: read<(query?: TaskTypeQuery) => Promise<Page<NamedTaskType>>>('/v1/task-types', {
    summary: 'List the types that have settings, by name.',
    query: taskTypeQueryFields,
    answer: pageOf({ type: 'object', required: ['type'], properties: { type: text } }),
  }),
  /** Reads the settings of a type. */
  taskType: read<(type: string) => Promise<TaskTypeRecord>>('/v1/task-types/{id}', {
    summary: 'Get the settings of a type.',
    answer: object,
    problems: ['TASK_TYPE_UNKNOWN'],
  }),
  /** Shows how often and how fast tasks move, by type and over time, as far as the babysitter has counted. */
  stats: read<(query?: StatsQuery) => Promise<StatsView>>('/v1/stats', {
    summary: 'Show how often and how fast tasks move, by type and over time.',
    query: statsQueryFields,
    answer: ref('Stats'),
  }),
  /** Lists queues and their depths, by name. */
  queues: read<(query?: PageQuery) => Promise<Page<QueueView>>>('/v1/queues', {
    summary: 'List queues and their depths, by name.',
    query: namedPageFields,
    answer: page('Queue'),
  }),
  /** Checks the store for broken rules, pinned snapshots, bloat, clock skew and schema drift. */
  doctor: read<() => Promise<Examination>>('/v1/doctor', {
    summary: 'Check the store for broken rules, pinned snapshots, bloat, clock skew and schema drift.',
    answer: ref('Examination'),
  }),
  /** Reads the feed of all events: from its start, from a cursor, or the `latest` ones. */
  events: read<(query?: FeedQuery) => Promise<FeedPage>>('/v1/events', {
    summary:
      'Read the feed of all events, from its start, from a cursor or the `latest`. A stream for clients that accept text/event-stream.',
    query: feedFields,
    answer: ref('FeedPage'),
    problems: ['CURSOR_GONE', 'STREAMS_FULL', 'STREAMS_OF_KEY'],
    streams: true,
  }),
  /** Creates a key. The secret is shown only once. */
  createKey: post<(key: NewKey, call?: Call) => Promise<MadeKey>>('/v1/keys', 'administer', ['body', 'call'], {
    summary: 'Create a key. The secret is shown only once.',
    body: keyFields,
    required: ['name'],
    answer: ref('MadeKey'),
    status: 201,
    isRepeatable: false,
  }),
  /** Lists keys, without their secrets. */
  keys: read<() => Promise<KeyView[]>>('/v1/keys', {
    permission: 'administer',
    summary: 'List keys, without their secrets.',
    answer: list(ref('Key')),
  }),
  /** Revokes a key. */
  revokeKey: control<(id: string, call?: Call) => Promise<KeyView>>('/v1/keys/{id}/revoke', {
    permission: 'administer',
    summary: 'Revoke a key.',
    answer: ref('Key'),
    problems: [],
  }),
}
