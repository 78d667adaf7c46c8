import type { JobSpec } from '../../spec/job-spec.ts'
import type { NamedJob } from '../../spec/parse-job-spec.ts'
import {
  bodyOf,
  type Call,
  type CancelCall,
  type ControlCall,
  cancelFields,
  type EndQuery,
  endFields,
  type PageQuery,
  pageFields,
  type RetryJobCall,
  retryJobFields,
} from '../call-options.ts'
import { type ArtifactQuery, type ArtifactView, artifactQueryFields } from '../files/artifacts.ts'
import { control, files, newStages, nextRound, page, pageWithTotal, patch, post, read } from '../operation.ts'
import { list, ref } from '../shapes.ts'
import {
  type EventView,
  type JobPatch,
  jobPatchFields,
  type Page,
  type TasksOfQuery,
  type TaskView,
  tasksOfFields,
} from '../tasks/tasks.ts'
import { type Added, type AddedStage, type JobQuery, type JobView, jobQueryFields, type StageView } from './jobs.ts'
import {
  type TimelineQuery,
  type TimelineView,
  type TroubleQuery,
  type TroubleView,
  timelineFields,
  troubleQueryFields,
} from './timeline.ts'

const answer = ref('Job')
type Control<Options = ControlCall> = (id: string, call?: Options) => Promise<JobView>

export const jobOperations = {
  /** Submits a job: a spec as an object, as YAML or JSON text, or the name of a pipeline. All of it or nothing. */
  submit: post<(spec: JobSpec | NamedJob | string, call?: Call) => Promise<JobView>>(
    '/v1/jobs',
    'produce',
    ['body', 'call'],
    {
      summary: 'Submit a job: all of it or nothing.',
      spec: 'job',
      answer,
      status: 201,
      problems: [
        'PIPELINE_UNKNOWN',
        'SUBMIT_CUT_OFF',
        'SPECS_WAIT',
        'ID_TAKEN',
        'JOB_NOT_FOUND',
        ...newStages,
        ...files,
      ],
      isBulk: true,
    },
  ),
  /** Lists jobs, newest first. */
  jobs: read<(query?: JobQuery) => Promise<Page<JobView>>>('/v1/jobs', {
    summary: 'List jobs, newest first.',
    query: jobQueryFields,
    answer: pageWithTotal('Job'),
  }),
  /** Reads a job with its stages and progress. With `waitSeconds`, waits until it has ended or the time is over. */
  job: read<(id: string, query?: EndQuery, signal?: AbortSignal) => Promise<JobView>>('/v1/jobs/{id}', {
    summary: 'Get a job with its stages and progress, now or when it has ended.',
    query: endFields,
    takes: ['id', 'query', 'signal'],
    answer,
  }),
  /** Changes metadata (a JSON merge patch) and priority. No state changes; an event records who did it. */
  patchJob: patch<(id: string, patch: JobPatch, call?: Call) => Promise<JobView>>('/v1/jobs/{id}', {
    summary: 'Change the priority of a job, or its metadata by a JSON merge patch.',
    body: jobPatchFields,
    answer,
    problems: ['PAYLOAD_TOO_LARGE'],
  }),
  /** Deletes a job that has ended. A job that is stopping is ended first. */
  deleteJob: control<(id: string, call?: ControlCall) => Promise<void>>('/v1/jobs/{id}', {
    method: 'DELETE',
    summary: 'Delete a job that has ended. A job that is stopping is ended first.',
    status: 204,
  }),
  /** Starts a job that was submitted with `start: false`. */
  startJob: control<Control>('/v1/jobs/{id}/start', {
    summary: 'Start a job that was submitted with `start: false`.',
    answer,
  }),
  /** Pauses a job: no more of its tasks are claimed, and those that run may finish. */
  pauseJob: control<Control>('/v1/jobs/{id}/pause', {
    summary: 'Pause a job. No more of its tasks are claimed; running tasks may finish.',
    answer,
  }),
  /** Resumes a paused job, or starts the next round of a job that failed or was cancelled. */
  resumeJob: control<Control>('/v1/jobs/{id}/resume', {
    summary: 'Resume a paused job, or start the next round of one that did not succeed.',
    answer,
    problems: nextRound,
  }),
  /** Cancels a job. */
  cancelJob: control<Control<CancelCall>>('/v1/jobs/{id}/cancel', {
    summary: 'Cancel a job.',
    body: bodyOf(cancelFields),
    answer,
  }),
  /** Runs again what did not succeed, in place or as a new job. */
  retryJob: control<Control<RetryJobCall>>('/v1/jobs/{id}/retry', {
    summary: 'Retry what did not succeed, in place or as a clone.',
    body: bodyOf(retryJobFields),
    answer,
    problems: [...nextRound, 'NOTHING_TO_REDO'],
  }),
  /** Closes an open job: no more stages can be added, and it ends when its stages have ended. */
  sealJob: control<Control>('/v1/jobs/{id}/seal', {
    permission: 'produce',
    summary: 'Seal an open job: no more stages can be added.',
    answer,
    queues: 'job',
  }),
  /** Adds stages to an open job. */
  addStages: post<(id: string, stages: readonly AddedStage[], call?: Call) => Promise<JobView & Added>>(
    '/v1/jobs/{id}/stages',
    'produce',
    ['id', 'body', 'call'],
    {
      summary: 'Add stages to an open job.',
      spec: 'stages',
      answer: ref('JobWithAdded'),
      problems: [...newStages, ...files],
      queues: 'added',
      isBulk: true,
    },
  ),
  /** Lists the events of a job, oldest first. */
  jobEvents: read<(id: string, query?: PageQuery) => Promise<Page<EventView>>>('/v1/jobs/{id}/events', {
    summary: 'List the events of a job, oldest first.',
    query: pageFields,
    answer: page('Event'),
  }),
  /** Lists the stages of a job, in their order. */
  jobStages: read<(id: string) => Promise<Page<StageView>>>('/v1/jobs/{id}/stages', {
    summary: 'List the stages of a job, in their order.',
    answer: page('Stage'),
  }),
  /** Lists the output files of a job, oldest first. */
  jobArtifacts: read<(id: string, query?: ArtifactQuery) => Promise<Page<ArtifactView>>>('/v1/jobs/{id}/artifacts', {
    summary: 'List the output files of a job, oldest first.',
    query: artifactQueryFields,
    answer: page('Artifact'),
  }),
  /** Lists the tasks of a job, newest first. */
  jobTasks: read<(id: string, query?: TasksOfQuery) => Promise<Page<TaskView>>>('/v1/jobs/{id}/tasks', {
    summary: 'List the tasks of a job, newest first.',
    query: tasksOfFields,
    answer: pageWithTotal('Task'),
  }),
  /** Shows when the stages of a job, and some of its tasks, were in which state. */
  timeline: read<(id: string, query?: TimelineQuery) => Promise<TimelineView>>('/v1/jobs/{id}/timeline', {
    summary: 'Show when the stages of a job, and some of its tasks, were in which state.',
    query: timelineFields,
    answer: ref('Timeline'),
  }),
  /** Groups tasks that did not succeed by similar errors, largest group first. */
  troubles: read<(query?: TroubleQuery) => Promise<TroubleView[]>>('/v1/troubles', {
    summary: 'Group tasks that did not succeed by similar errors, largest group first.',
    query: troubleQueryFields,
    answer: list(ref('Trouble')),
  }),
}
