import { nested } from '../../schema/check.ts'
import {
  bodyOf,
  type Call,
  type CancelCall,
  type ControlCall,
  cancelTaskFields,
  type DeadLetterCall,
  deadLetterFields,
  type EndQuery,
  endFields,
  type Fenced,
} from '../call-options.ts'
import {
  type ArtifactQuery,
  type ArtifactView,
  artifactQueryFields,
  type Lineage,
  lineageFields,
} from '../files/artifacts.ts'
import { control, files, newPayloads, nextRound, page, pageWithTotal, patch, post, read } from '../operation.ts'
import { list, ref, text } from '../shapes.ts'
import {
  type DeadLetterQuery,
  deadLetterQueryFields,
  type RedriveAnswer,
  type RedriveProgress,
  type RedriveRequest,
  redriveFields,
} from './dead-letters.ts'
import { type LogPage, type LogQuery, logQueryFields } from './logs.ts'
import { taskFields } from './new-task.ts'
import {
  type AttemptView,
  type EventView,
  type MetadataPatch,
  metadataFields,
  type NewTaskItem,
  type Page,
  type QueuedTask,
  type TaskEventQuery,
  type TaskQuery,
  type TaskView,
  taskEventFields,
  taskQueryFields,
} from './tasks.ts'

const answer = ref('Task')
type Control<Options = ControlCall> = (id: string, call?: Options) => Promise<TaskView>

export const taskOperations = {
  /** Enqueues up to 10,000 tasks, all or none. The answers are in the order of the tasks. */
  enqueueMany: post<(items: readonly NewTaskItem[], call?: Call) => Promise<QueuedTask[]>>(
    '/v1/tasks',
    'produce',
    ['body', 'call'],
    {
      summary: 'Enqueue a task, or up to 10,000.',
      list: nested(taskFields, ['type']),
      acceptsSingle: true,
      answer: { anyOf: [ref('QueuedTask'), list(ref('QueuedTask'))] },
      status: 201,
      problems: ['ID_TAKEN', ...newPayloads, ...files],
      queues: 'enqueued',
      isBulk: true,
    },
  ),
  /** Lists tasks, newest first. */
  tasks: read<(query?: TaskQuery) => Promise<Page<TaskView>>>('/v1/tasks', {
    summary: 'List tasks, newest first.',
    query: taskQueryFields,
    answer: pageWithTotal('Task'),
  }),
  /** Reads a task. With `waitSeconds`, waits until it has ended or the time is over. */
  task: read<(id: string, query?: EndQuery, signal?: AbortSignal) => Promise<TaskView>>('/v1/tasks/{id}', {
    summary: 'Get a task, now or when it has ended.',
    query: endFields,
    takes: ['id', 'query', 'signal'],
    answer,
  }),
  /** Lists the events of a task, oldest first. */
  taskEvents: read<(id: string, query?: TaskEventQuery) => Promise<Page<EventView>>>('/v1/tasks/{id}/events', {
    summary: 'List the events of a task, oldest first.',
    query: taskEventFields,
    answer: page('Event'),
  }),
  /** Lists the attempts of a task, one per lease. */
  attempts: read<(id: string) => Promise<AttemptView[]>>('/v1/tasks/{id}/attempts', {
    summary: 'List the attempts of a task, one per lease.',
    answer: list(ref('Attempt')),
  }),
  /** Reads the logs of a task's handler, attempt by attempt. */
  logs: read<(id: string, query?: LogQuery) => Promise<LogPage>>('/v1/tasks/{id}/logs', {
    summary: 'Read the logs of a task. With the cursor `behind` of an earlier answer, read what was logged since.',
    query: logQueryFields,
    answer: page('LogLine', { behind: text }),
  }),
  /** Lists the output files of a task, oldest first. */
  taskArtifacts: read<(id: string, query?: ArtifactQuery) => Promise<Page<ArtifactView>>>('/v1/tasks/{id}/artifacts', {
    summary: 'List the output files of a task, oldest first.',
    query: artifactQueryFields,
    answer: page('Artifact'),
  }),
  /** Shows which inputs a file was made from, and what was made from it. */
  lineage: read<(query: { readonly uri: string }) => Promise<Lineage>>('/v1/lineage', {
    summary: 'Show which inputs a file was made from, and what was made from it.',
    query: lineageFields,
    answer: ref('Lineage'),
    problems: ['URI_INVALID'],
  }),
  /** Changes the metadata of a task by a JSON merge patch. */
  patchTask: patch<(id: string, patch: MetadataPatch, call?: Call) => Promise<TaskView>>('/v1/tasks/{id}', {
    summary: 'Change the metadata of a task by a JSON merge patch.',
    body: metadataFields,
    answer,
    problems: ['PAYLOAD_TOO_LARGE'],
  }),
  /** Cancels a task. Soft: the worker that runs it is told, and may finish or clean up. Hard: it ends now. */
  cancel: control<Control<CancelCall & Fenced>>('/v1/tasks/{id}/cancel', {
    summary: 'Cancel a task.',
    body: bodyOf(cancelTaskFields),
    answer,
    problems: ['MOVE_REFUSED', 'LEASE_LOST'],
  }),
  /** Starts the next round of a task that was cancelled. */
  resume: control<Control>('/v1/tasks/{id}/resume', {
    summary: 'Start the next round of a task that was cancelled.',
    answer,
    problems: nextRound,
  }),
  /** Starts the next round of a task that failed or expired. */
  retry: control<Control>('/v1/tasks/{id}/retry', {
    summary: 'Start the next round of a task that failed or expired.',
    answer,
    problems: nextRound,
  }),
  /** Moves a task to the dead-letter queue. */
  deadLetter: control<(id: string, call: DeadLetterCall) => Promise<TaskView>>('/v1/tasks/{id}/dead-letter', {
    summary: 'Move a task to the dead-letter queue.',
    body: bodyOf(deadLetterFields),
    required: ['reasonCode'],
    answer,
    problems: ['MOVE_REFUSED', 'LEASE_LOST'],
  }),
  /** Deletes a task that has ended and belongs to no job. */
  deleteTask: control<(id: string, call?: ControlCall) => Promise<void>>('/v1/tasks/{id}', {
    method: 'DELETE',
    summary: 'Delete a task that has ended and belongs to no job.',
    status: 204,
    problems: ['MOVE_REFUSED', 'TASK_OF_JOB'],
  }),
  /** Lists dead letters, newest first. */
  deadLetters: read<(query?: DeadLetterQuery) => Promise<Page<TaskView>>>('/v1/dead-letters', {
    summary: 'List dead letters, newest first.',
    query: deadLetterQueryFields,
    answer: page('Task'),
  }),
  /** Reads the progress of a redrive. */
  redriveProgress: read<(id: string) => Promise<RedriveProgress>>('/v1/dead-letters/redrives/{id}', {
    summary: 'Get the progress of a redrive.',
    answer: ref('RedriveProgress'),
  }),
  /** Starts the next round of dead letters. */
  redrive: post<(request: RedriveRequest, call?: Call) => Promise<RedriveAnswer>>(
    '/v1/dead-letters/redrive',
    'operate',
    ['body', 'call'],
    {
      summary: 'Start the next round of dead letters.',
      body: redriveFields,
      answer: ref('Redrive'),
      problems: ['TASK_NOT_FOUND', 'PAYLOAD_REFUSED', 'PAYLOAD_TOO_LARGE', ...files],
    },
  ),
}
