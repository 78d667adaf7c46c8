/** All that can be asked of Pawl: the engine answers it in process, the client over HTTP. */

import type { ReasonCode, Step } from '../kernel/decide.ts'
import type { StageState } from '../kernel/stage.ts'
import type { JobSpec } from '../spec/job-spec.ts'
import type { NamedJob } from '../spec/named-job.ts'
import type { KeyView, MadeKey, NewKey } from './admin/keys.ts'
import type { Examination, LostWorkerView, QueueView, WorkerView } from './admin/operate.ts'
import type { StatsQuery, StatsView } from './admin/stats.ts'
import type {
  ArtifactQuery,
  ArtifactView,
  Lineage,
  SaidArtifacts,
  StageFile,
  StageFilesQuery,
} from './files/artifacts.ts'
import type { Added, AddedStage, JobQuery, JobView, NewStageTask, StageView, TaskCounts } from './jobs/jobs.ts'
import type { TimelineQuery, TimelineView, TroubleQuery, TroubleView } from './jobs/timeline.ts'
import type { DeadLetterQuery, RedriveAnswer, RedriveProgress, RedriveRequest } from './tasks/dead-letters.ts'
import type { LogPage, LogQuery } from './tasks/logs.ts'
import type {
  BeatOfTask,
  ClaimedTask,
  ClaimsRequest,
  HeartbeatAnswer,
  SaidOf,
  SyncAnswer,
  SyncRequest,
} from './tasks/sync.ts'
import type { TaskDefinition } from './tasks/task-type.ts'
import type {
  AttemptView,
  EventView,
  FeedPage,
  FeedQuery,
  JobPatch,
  MetadataPatch,
  NamedTaskType,
  NewTaskItem,
  Numbered,
  Page,
  QueuedTask,
  TaskOptions,
  TaskQuery,
  TaskTypeRecord,
  TaskView,
} from './tasks/tasks.ts'

/** What goes with a request that changes something. */
export interface Call {
  /** Repeated with the same key within 24 hours, a request has its first answer and no second effect. */
  readonly idempotencyKey?: string
  /** Who asks, for the events. */
  readonly actor?: string
  /** W3C trace context of the request: a job or task that brings none of its own has this one. */
  readonly traceparent?: string
}

export interface ControlCall extends Call {
  readonly reason?: string
  /** Only if it is in one of these states; in another it is refused, whatever the move. */
  readonly ifState?: string | readonly string[]
}

export interface LoseWorkerCall extends Call {
  /** Why the worker ended, if you know. It becomes the error of its tasks. */
  readonly reason?: string
}

export interface CancelCall extends ControlCall {
  /** Soft: work in hand is told, and may finish. Hard: it is fenced off at once. Default: soft. */
  readonly mode?: 'soft' | 'hard'
}

export interface RetryJobCall extends ControlCall {
  /** Not in place, but as a new job with just the tasks that did not succeed. */
  readonly clone?: boolean
  /** Of the clone. Default: that of the job. */
  readonly name?: string
}

/** Who names an epoch speaks as the holder of that lease: once it is lost, nothing is done. */
export interface Fenced {
  readonly epoch?: number
}

export interface DeadLetterCall extends ControlCall, Fenced {
  readonly reasonCode: ReasonCode
  readonly step?: Step
}

export interface ApproveCall extends ControlCall {
  readonly comment?: string
  /** What the approver filled in: later stages can read it. */
  readonly data?: unknown
}

export interface PageQuery {
  readonly limit?: number
  readonly cursor?: string
}

export interface TaskTypeQuery extends PageQuery {
  /** Only the type of this name. If it has no settings, the page is empty. */
  readonly type?: string
}

export interface WorkerQuery extends PageQuery {
  /** Only workers that were heard of within this time. Default: 60. */
  readonly withinSeconds?: number
}

export interface TaskEventQuery extends PageQuery {
  /** Also heartbeats, where they belong among the events: they move nothing, have no seq of their own, and are kept for a day. */
  readonly pulses?: boolean
}

export interface StageQuery extends PageQuery, Numbered {
  readonly state?: StageState | readonly StageState[]
  readonly jobId?: string
  readonly queue?: string
}

/** Tasks of one job or stage. */
export type TasksOfQuery = Omit<TaskQuery, 'jobId' | 'stageId'>

export interface PawlApi {
  enqueue<In>(type: string | TaskDefinition<In>, payload: In, options?: TaskOptions & Call): Promise<QueuedTask>
  enqueueMany(items: readonly NewTaskItem[], call?: Call): Promise<QueuedTask[]>
  task(id: string): Promise<TaskView>
  tasks(query?: TaskQuery): Promise<Page<TaskView>>
  taskEvents(id: string, query?: TaskEventQuery): Promise<Page<EventView>>
  attempts(id: string): Promise<AttemptView[]>
  logs(id: string, query?: LogQuery): Promise<LogPage>
  taskArtifacts(id: string, query?: ArtifactQuery): Promise<Page<ArtifactView>>
  /** Which inputs made a file, and what was made of it. */
  lineage(query: { readonly uri: string }): Promise<Lineage>
  patchTask(id: string, patch: MetadataPatch, call?: Call): Promise<TaskView>
  cancel(id: string, call?: CancelCall & Fenced): Promise<TaskView>
  resume(id: string, call?: ControlCall): Promise<TaskView>
  retry(id: string, call?: ControlCall): Promise<TaskView>
  deadLetter(id: string, call: DeadLetterCall): Promise<TaskView>
  deleteTask(id: string, call?: ControlCall): Promise<void>
  deadLetters(query?: DeadLetterQuery): Promise<Page<TaskView>>
  redrive(request: RedriveRequest, call?: Call): Promise<RedriveAnswer>
  redriveProgress(id: string): Promise<RedriveProgress>

  submit(spec: JobSpec | NamedJob | string, call?: Call): Promise<JobView>
  job(id: string): Promise<JobView>
  jobs(query?: JobQuery): Promise<Page<JobView>>
  timeline(id: string, query?: TimelineQuery): Promise<TimelineView>
  /** What ended badly, by what is alike. */
  troubles(query?: TroubleQuery): Promise<TroubleView[]>
  jobEvents(id: string, query?: PageQuery): Promise<Page<EventView>>
  patchJob(id: string, patch: JobPatch, call?: Call): Promise<JobView>
  jobStages(id: string): Promise<Page<StageView>>
  jobArtifacts(id: string, query?: ArtifactQuery): Promise<Page<ArtifactView>>
  jobTasks(id: string, query?: TasksOfQuery): Promise<Page<TaskView>>
  startJob(id: string, call?: ControlCall): Promise<JobView>
  pauseJob(id: string, call?: ControlCall): Promise<JobView>
  resumeJob(id: string, call?: ControlCall): Promise<JobView>
  cancelJob(id: string, call?: CancelCall): Promise<JobView>
  retryJob(id: string, call?: RetryJobCall): Promise<JobView>
  sealJob(id: string, call?: ControlCall): Promise<JobView>
  addStages(id: string, stages: readonly AddedStage[], call?: Call): Promise<JobView & Added>
  deleteJob(id: string, call?: ControlCall): Promise<void>

  stage(id: string): Promise<StageView>
  stageCounts(id: string): Promise<TaskCounts>
  stages(query?: StageQuery): Promise<Page<StageView>>
  stageEvents(id: string, query?: PageQuery): Promise<Page<EventView>>
  patchStage(id: string, patch: MetadataPatch, call?: Call): Promise<StageView>
  stageArtifacts(id: string, query?: ArtifactQuery): Promise<Page<ArtifactView>>
  stageFiles(id: string, query?: StageFilesQuery): Promise<Page<StageFile>>
  stageTasks(id: string, query?: TasksOfQuery): Promise<Page<TaskView>>
  approve(id: string, call?: ApproveCall): Promise<StageView>
  reject(id: string, call?: ApproveCall): Promise<StageView>
  hold(id: string, call?: ControlCall): Promise<StageView>
  cancelStage(id: string, call?: CancelCall): Promise<StageView>
  retryStage(id: string, call?: ControlCall): Promise<StageView>
  sealStage(id: string, call?: ControlCall): Promise<StageView>
  addTasks(id: string, tasks: readonly NewStageTask[], call?: Call): Promise<StageView & Added>

  sync(request: SyncRequest, signal?: AbortSignal): Promise<SyncAnswer>
  /** The worker protocol one task at a time: what `sync` would refuse is thrown. */
  claims(request: ClaimsRequest, call?: Call, signal?: AbortSignal): Promise<readonly ClaimedTask[]>
  start(id: string, epoch: number): Promise<TaskView>
  heartbeat(id: string, epoch: number, said?: Pick<BeatOfTask, 'progress' | 'checkpoint'>): Promise<HeartbeatAnswer>
  succeed(id: string, epoch: number, said?: SaidOf<'succeeded'>): Promise<TaskView>
  fail(id: string, epoch: number, said?: SaidOf<'failed'>): Promise<TaskView>
  skip(id: string, epoch: number, said?: SaidOf<'skipped'>): Promise<TaskView>
  release(id: string, epoch: number, said?: SaidOf<'released'>): Promise<TaskView>
  cancelled(id: string, epoch: number, said?: SaidOf<'cancelled'>): Promise<TaskView>
  /** What became of files that a task puts out; answers with all that its attempt has registered. */
  reportArtifacts(id: string, epoch: number, said: SaidArtifacts): Promise<readonly ArtifactView[]>
  register(definition: TaskDefinition): Promise<void>
  putTaskType(type: string, options: TaskTypeRecord): Promise<void>
  taskType(type: string): Promise<TaskTypeRecord>
  taskTypes(query?: TaskTypeQuery): Promise<Page<NamedTaskType>>

  events(query?: FeedQuery): Promise<FeedPage>
  stats(query?: StatsQuery): Promise<StatsView>
  queues(query?: PageQuery): Promise<Page<QueueView>>
  workers(query?: WorkerQuery): Promise<Page<WorkerView>>
  /** Declares a worker dead, by its name or by that of its pod: its leases end at once, as if they had run out. */
  loseWorker(worker: string, call?: LoseWorkerCall): Promise<LostWorkerView>
  doctor(): Promise<Examination>

  createKey(key: NewKey, call?: Call): Promise<MadeKey>
  keys(): Promise<KeyView[]>
  revokeKey(id: string, call?: Call): Promise<KeyView>
}
