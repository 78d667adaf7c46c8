import { nested } from '../../schema/check.ts'
import {
  type ApproveCall,
  approveFields,
  bodyOf,
  type Call,
  type CancelCall,
  type ControlCall,
  cancelFields,
  type PageQuery,
  pageFields,
} from '../call-options.ts'
import {
  type ArtifactQuery,
  type ArtifactView,
  artifactQueryFields,
  type StageFile,
  type StageFilesQuery,
  stageFilesFields,
} from '../files/artifacts.ts'
import { control, files, newPayloads, nextRound, page, pageWithTotal, patch, post, read } from '../operation.ts'
import { ref } from '../shapes.ts'
import {
  type EventView,
  type MetadataPatch,
  metadataFields,
  type Page,
  type TasksOfQuery,
  type TaskView,
  tasksOfFields,
} from '../tasks/tasks.ts'
import {
  type Added,
  type NewStageTask,
  type StageJob,
  type StageQuery,
  type StageView,
  stageQueryFields,
  stageTaskFields,
  type TaskCounts,
} from './jobs.ts'

const answer = ref('Stage')
type Control<Options = ControlCall> = (id: string, call?: Options) => Promise<StageView>

export const stageOperations = {
  /** Lists the stages of all jobs. */
  stages: read<(query?: StageQuery) => Promise<Page<StageView>>>('/v1/stages', {
    summary: 'List the stages of all jobs.',
    query: stageQueryFields,
    answer: pageWithTotal('Stage'),
  }),
  /** Reads a stage. */
  stage: read<(id: string) => Promise<StageView>>('/v1/stages/{id}', { summary: 'Get a stage.', answer }),
  /** Counts the tasks of a stage by state. */
  stageCounts: read<(id: string) => Promise<TaskCounts>>('/v1/stages/{id}/counts', {
    summary: 'Count the tasks of a stage by state.',
    answer: ref('TaskCounts'),
  }),
  /** Changes the metadata of a stage by a JSON merge patch. */
  patchStage: patch<(id: string, patch: MetadataPatch, call?: Call) => Promise<StageView>>('/v1/stages/{id}', {
    summary: 'Change the metadata of a stage by a JSON merge patch.',
    body: metadataFields,
    answer,
    problems: ['PAYLOAD_TOO_LARGE'],
  }),
  /** Approves a stage that waits for approval. */
  approve: control<Control<ApproveCall>>('/v1/stages/{id}/approve', {
    summary: 'Approve a stage that waits for approval.',
    body: bodyOf(approveFields),
    answer,
    problems: ['MOVE_REFUSED', 'PAYLOAD_TOO_LARGE'],
  }),
  /** Rejects a stage that waits for approval. */
  reject: control<Control<ApproveCall>>('/v1/stages/{id}/reject', {
    summary: 'Reject a stage that waits for approval.',
    body: bodyOf(approveFields),
    answer,
  }),
  /** Holds a stage until it is approved. */
  hold: control<Control>('/v1/stages/{id}/hold', { summary: 'Hold a stage until it is approved.', answer }),
  /** Cancels a stage. */
  cancelStage: control<Control<CancelCall>>('/v1/stages/{id}/cancel', {
    summary: 'Cancel a stage.',
    body: bodyOf(cancelFields),
    answer,
  }),
  /** Runs again what did not succeed in a stage. */
  retryStage: control<Control>('/v1/stages/{id}/retry', {
    summary: 'Retry what did not succeed in a stage.',
    answer,
    problems: nextRound,
  }),
  /** Closes an open stage: no more tasks can be added, and it ends when its tasks have ended. */
  sealStage: control<Control>('/v1/stages/{id}/seal', {
    permission: 'produce',
    summary: 'Seal an open stage: no more tasks can be added.',
    answer,
    queues: 'stage',
  }),
  /** Adds tasks to an open stage. */
  addTasks: post<(id: string, tasks: readonly NewStageTask[], call?: Call) => Promise<StageView & Added>>(
    '/v1/stages/{id}/tasks',
    'produce',
    ['id', 'body', 'call'],
    {
      summary: 'Add tasks to an open stage.',
      list: nested(stageTaskFields),
      answer: ref('StageWithAdded'),
      problems: ['SEALED', 'MOVE_REFUSED', ...newPayloads, ...files],
      queues: 'stage',
      isBulk: true,
    },
  ),
  /** Lists the events of a stage, oldest first. */
  stageEvents: read<(id: string, query?: PageQuery) => Promise<Page<EventView>>>('/v1/stages/{id}/events', {
    summary: 'List the events of a stage, oldest first.',
    query: pageFields,
    answer: page('Event'),
  }),
  /** Lists the output files of a stage, oldest first. */
  stageArtifacts: read<(id: string, query?: ArtifactQuery) => Promise<Page<ArtifactView>>>(
    '/v1/stages/{id}/artifacts',
    {
      summary: 'List the output files of a stage, oldest first.',
      query: artifactQueryFields,
      answer: page('Artifact'),
    },
  ),
  /** Lists the files that a stage has published, by name, for workers of later stages. */
  stageFiles: read<(id: string, query?: StageFilesQuery) => Promise<Page<StageFile>>>('/v1/stages/{id}/files', {
    permission: 'work',
    summary: 'List the files that a stage has published, by name. For workers of later stages.',
    query: stageFilesFields,
    answer: page('StageFile'),
    queues: 'siblings',
  }),
  /** Reads the job of a stage, with its input, for workers of the stage. */
  stageJob: read<(id: string) => Promise<StageJob>>('/v1/stages/{id}/job', {
    permission: 'work',
    summary: 'Read the job of a stage, with its input. For workers of the stage.',
    answer: ref('StageJob'),
    queues: 'stage',
  }),
  /** Lists the tasks of a stage, newest first. */
  stageTasks: read<(id: string, query?: TasksOfQuery) => Promise<Page<TaskView>>>('/v1/stages/{id}/tasks', {
    summary: 'List the tasks of a stage, newest first.',
    query: tasksOfFields,
    answer: pageWithTotal('Task'),
  }),
}
