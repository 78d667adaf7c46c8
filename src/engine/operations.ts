/** Runs the operations of the registry. The compiler checks that each of them has a function here. */

import { jobLifecycle } from '../kernel/job.ts'
import { taskLifecycle } from '../kernel/task.ts'
import type { EndQuery } from '../protocol/call-options.ts'
import type { OperationMethods, OperationName } from '../protocol/operations.ts'
import type { OneOutcome, SyncRequest } from '../protocol/tasks/sync.ts'
import type { JobSpec } from '../spec/job-spec.ts'
import type { NamedJob } from '../spec/parse-job-spec.ts'
import { examineOnce } from './admin/doctor.ts'
import { createKey, findKeys, revokeKey } from './admin/keys.ts'
import { readStatistics } from './admin/stats.ts'
import type { Context } from './context.ts'
import { readWhenEnded } from './ends.ts'
import * as events from './feed/read-events.ts'
import { findArtifacts, findStageFiles, readLineage } from './files/read-artifacts.ts'
import * as jobControl from './jobs/job-control.ts'
import { deleteJob, retryJob } from './jobs/job-ends.ts'
import * as jobs from './jobs/read-jobs.ts'
import * as stageControl from './jobs/stage-control.ts'
import { submitOrAdd } from './jobs/submit-or-add.ts'
import { findTroubles, readTimeline } from './jobs/timeline.ts'
import * as control from './tasks/control.ts'
import { enqueueTasks } from './tasks/enqueue.ts'
import { readLogs } from './tasks/logs.ts'
import type { Reports } from './tasks/merge-reports.ts'
import * as oneTask from './tasks/one-task.ts'
import { patchJob, patchStage, patchTask } from './tasks/patch.ts'
import * as tasks from './tasks/read-tasks.ts'
import { readRedrive, redrive } from './tasks/redrive.ts'
import { sync } from './tasks/sync.ts'
import { writeTaskType } from './tasks/task-types.ts'
import { joinTransaction, type UnitCall } from './unit-of-work.ts'

/** On whose behalf an operation runs. */
export interface Caller {
  readonly context: Context
  /** Queues that the caller's key is limited to; null: no limit. */
  readonly queues: readonly string[] | null
  /** The id of the caller's key; '': it has none. */
  readonly holder: string
  /** Writes the reports of many workers together; undefined: each request writes its own. */
  readonly reports?: Reports
}

/** A use case that needs nothing of its caller but the context. */
const use =
  <Args extends unknown[], Answer>(useCase: (context: Context, ...args: Args) => Promise<Answer>) =>
  ({ context }: Caller, ...args: Args): Promise<Answer> =>
    useCase(context, ...args)

/** A use case that reads what belongs to one entity, of any kind. */
const readOf =
  <Kind, Args extends unknown[], Answer>(
    read: (context: Context, kind: Kind, ...args: Args) => Promise<Answer>,
    kind: NoInfer<Kind>,
  ) =>
  ({ context }: Caller, ...args: Args): Promise<Answer> =>
    read(context, kind, ...args)

const settle =
  <Outcome extends OneOutcome>(outcome: Outcome) =>
  ({ context, ...by }: Caller, id: string, epoch: number, report?: oneTask.LocalReport<Outcome>) =>
    oneTask.settleOne(context, outcome, id, epoch, report, by)

export const run = {
  submit: ({ context, queues }: Caller, spec: JobSpec | NamedJob | string, call?: UnitCall) =>
    submitOrAdd(context, spec, call, queues),
  jobs: use(jobs.findJobs),
  job: ({ context }: Caller, id: string, query?: EndQuery, signal?: AbortSignal) =>
    readWhenEnded(context, jobLifecycle, { id, query, signal }, () => jobs.readJob(context, id)),
  patchJob: use(patchJob),
  deleteJob: use(deleteJob),
  startJob: use(jobControl.start),
  pauseJob: use(jobControl.pause),
  resumeJob: use(jobControl.resume),
  cancelJob: use(jobControl.cancel),
  retryJob: use(retryJob),
  sealJob: use(jobControl.seal),
  addStages: use(jobControl.addStages),
  jobEvents: readOf(events.readEventsOf, 'job'),
  jobStages: async ({ context }: Caller, id: string) => ({
    items: [...(await jobs.readJob(context, id)).stages],
    next: null,
  }),
  jobArtifacts: readOf(findArtifacts, 'job'),
  jobTasks: readOf(tasks.findTasksOf, 'job'),
  timeline: use(readTimeline),
  troubles: use(findTroubles),

  stages: use(jobs.findStages),
  stage: use(jobs.readStage),
  stageCounts: use(jobs.countTasksOfStage),
  patchStage: use(patchStage),
  approve: use(stageControl.approve),
  reject: use(stageControl.reject),
  hold: use(stageControl.hold),
  cancelStage: use(stageControl.cancelStage),
  retryStage: use(stageControl.retryStage),
  sealStage: use(stageControl.sealStage),
  addTasks: use(stageControl.addTasks),
  stageEvents: readOf(events.readEventsOf, 'stage'),
  stageArtifacts: readOf(findArtifacts, 'stage'),
  stageFiles: use(findStageFiles),
  stageJob: use(jobs.readStageJob),
  stageTasks: readOf(tasks.findTasksOf, 'stage'),

  enqueueMany: use(enqueueTasks),
  tasks: use(tasks.findTasks),
  task: ({ context }: Caller, id: string, query?: EndQuery, signal?: AbortSignal) =>
    readWhenEnded(context, taskLifecycle, { id, query, signal }, () => tasks.readTask(context, id)),
  taskEvents: use(events.readTaskEvents),
  attempts: use(events.readAttempts),
  logs: use(readLogs),
  taskArtifacts: readOf(findArtifacts, 'task'),
  lineage: use(readLineage),
  patchTask: use(patchTask),
  cancel: use(control.cancelTask),
  resume: use(control.resumeTask),
  retry: use(control.retryTask),
  deadLetter: use(control.deadLetterTask),
  deleteTask: use(control.deleteTask),
  deadLetters: use(tasks.findDeadLetters),
  redriveProgress: use(readRedrive),
  redrive: use(redrive),

  sync: ({ context, ...by }: Caller, request: SyncRequest, signal?: AbortSignal) => sync(context, request, signal, by),
  claims: use(oneTask.claims),
  start: use(oneTask.start),
  heartbeat: use(oneTask.heartbeat),
  succeed: settle('succeeded'),
  fail: settle('failed'),
  skip: settle('skipped'),
  release: settle('released'),
  cancelled: settle('cancelled'),
  reportArtifacts: use(oneTask.artifacts),
  workers: use(tasks.findWorkers),
  loseWorker: use(control.loseWorker),

  putTaskType: use(writeTaskType),
  taskTypes: use(tasks.findTaskTypes),
  taskType: use(tasks.readTaskType),
  stats: use(readStatistics),
  queues: use(tasks.findQueues),
  doctor: use(examineOnce),
  events: use(events.readEvents),
  createKey: use(createKey),
  keys: use(findKeys),
  revokeKey: use(revokeKey),
} satisfies { [Name in OperationName]: Run<OperationMethods[Name]> }

type Run<Method> = Method extends (...args: infer Args) => infer Answer
  ? (caller: Caller, ...args: Args) => Answer
  : never

/** The methods of the engine in this process. Where a change can join a caller's transaction, they take one. */
export type EngineMethods = {
  [Name in keyof OperationMethods]: (typeof run)[Name] extends (caller: Caller, ...args: infer Args) => infer Answer
    ? (...args: Args) => Answer
    : never
}

export function methodsFor(caller: Caller): EngineMethods {
  const bound = Object.entries(run).map(([name, operation]) => [
    name,
    (...args: unknown[]) => {
      const run = operation as (caller: Caller, ...args: unknown[]) => Promise<unknown>
      const options = args.at(-1) as UnitCall | undefined | null
      if (options?.tx === undefined) return run(caller, ...args)
      return joinTransaction(caller.context, options.tx, tx => run(caller, ...args.slice(0, -1), { ...options, tx }))
    },
  ])
  return Object.fromEntries(bound)
}
