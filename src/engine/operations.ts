/** Runs the operations of the registry. The compiler checks that each of them has a function here. */

import type { Call } from '../protocol/call-options.ts'
import type { OperationMethods, OperationName } from '../protocol/operations.ts'
import type { ClaimsRequest, OneOutcome, SyncRequest } from '../protocol/tasks/sync.ts'
import type { NewTaskItem } from '../protocol/tasks/tasks.ts'
import type { JobSpec } from '../spec/job-spec.ts'
import type { NamedJob } from '../spec/named-job.ts'
import { examine } from './admin/doctor.ts'
import { createKey, findKeys, revokeKey } from './admin/keys.ts'
import { readStatistics } from './admin/stats.ts'
import type { Context } from './context.ts'
import { findArtifacts, findStageFiles, readLineage } from './files/read-artifacts.ts'
import * as jobControl from './jobs/job-control.ts'
import { deleteJob, retryJob } from './jobs/job-ends.ts'
import * as jobs from './jobs/read-jobs.ts'
import * as stageControl from './jobs/stage-control.ts'
import type { SubmitCall } from './jobs/submit.ts'
import { submitOrAdd } from './jobs/submit-or-add.ts'
import { findTroubles, readTimeline } from './jobs/timeline.ts'
import * as control from './tasks/control.ts'
import { deleteTask } from './tasks/delete-task.ts'
import { type EnqueueCall, enqueueTasks } from './tasks/enqueue.ts'
import { readLogs } from './tasks/logs.ts'
import { loseWorker } from './tasks/lose-worker.ts'
import type { Reports } from './tasks/merge-reports.ts'
import * as oneTask from './tasks/one-task.ts'
import { patchJob, patchStage, patchTask } from './tasks/patch.ts'
import * as tasks from './tasks/read-tasks.ts'
import { readRedrive, redrive } from './tasks/redrive.ts'
import { sync } from './tasks/sync.ts'
import { readTaskEvents } from './tasks/task-events.ts'
import { checkPayloads, writeTaskType } from './tasks/task-types.ts'

/** On whose behalf an operation runs. */
export interface Caller {
  readonly context: Context
  /** Queues that the caller's key is limited to; null: no limit. */
  readonly queues: readonly string[] | null
  /** Writes the reports of many workers together; undefined: each request writes its own. */
  readonly reports?: Reports
}

/** A use case that needs nothing of its caller but the context. */
const use =
  <Args extends unknown[], Answer>(useCase: (context: Context, ...args: Args) => Promise<Answer>) =>
  ({ context }: Caller, ...args: Args): Promise<Answer> =>
    useCase(context, ...args)

const eventsOf = (kind: 'job' | 'stage') =>
  use((context, id: string, query?: Parameters<typeof tasks.readEventsOf>[3]) =>
    tasks.readEventsOf(context, kind, id, query),
  )

const artifactsOf = (kind: 'job' | 'stage' | 'task') =>
  use((context, id: string, query?: Parameters<typeof findArtifacts>[3]) => findArtifacts(context, kind, id, query))

const tasksOf = (kind: 'job' | 'stage') =>
  use((context, id: string, query?: Parameters<typeof tasks.findTasksOf>[3]) =>
    tasks.findTasksOf(context, kind, id, query),
  )

const settle =
  <Outcome extends OneOutcome>(outcome: Outcome) =>
  ({ context, queues }: Caller, id: string, epoch: number, report?: oneTask.Said<Outcome>) =>
    oneTask.settleOne(context, outcome, id, epoch, report, { queues })

export const run = {
  submit: ({ context, queues }: Caller, spec: JobSpec | NamedJob | string, call?: SubmitCall) =>
    submitOrAdd(context, spec, call, queues),
  jobs: use(jobs.findJobs),
  job: use(jobs.readJob),
  patchJob: use(patchJob),
  deleteJob: use(deleteJob),
  startJob: use(jobControl.start),
  pauseJob: use(jobControl.pause),
  resumeJob: use(jobControl.resume),
  cancelJob: use(jobControl.cancel),
  retryJob: use(retryJob),
  sealJob: use(jobControl.seal),
  addStages: use(jobControl.addStages),
  jobEvents: eventsOf('job'),
  jobStages: async ({ context }: Caller, id: string) => ({
    items: [...(await jobs.readJob(context, id)).stages],
    next: null,
  }),
  jobArtifacts: artifactsOf('job'),
  jobTasks: tasksOf('job'),
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
  stageEvents: eventsOf('stage'),
  stageArtifacts: artifactsOf('stage'),
  stageFiles: use(findStageFiles),
  stageTasks: tasksOf('stage'),

  async enqueueMany({ context }: Caller, items: readonly NewTaskItem[], call?: EnqueueCall) {
    await checkPayloads(context, items)
    return enqueueTasks(context, items, call)
  },
  tasks: use(tasks.findTasks),
  task: use(tasks.readTask),
  taskEvents: use(readTaskEvents),
  attempts: use(tasks.readAttempts),
  logs: use(readLogs),
  taskArtifacts: artifactsOf('task'),
  lineage: use(readLineage),
  patchTask: use(patchTask),
  cancel: use(control.cancelTask),
  resume: use(control.resumeTask),
  retry: use(control.retryTask),
  deadLetter: use(control.deadLetterTask),
  deleteTask: use(deleteTask),
  deadLetters: use(tasks.findDeadLetters),
  redriveProgress: use(readRedrive),
  redrive: use(redrive),

  sync: ({ context, ...by }: Caller, request: SyncRequest, signal?: AbortSignal) => sync(context, request, signal, by),
  claims: ({ context }: Caller, request: ClaimsRequest, call?: Call, signal?: AbortSignal) =>
    oneTask.claims(context, request, call, signal),
  start: use(oneTask.start),
  heartbeat: use(oneTask.heartbeat),
  succeed: settle('succeeded'),
  fail: settle('failed'),
  skip: settle('skipped'),
  release: settle('released'),
  cancelled: settle('cancelled'),
  reportArtifacts: use(oneTask.artifacts),
  workers: use(tasks.findWorkers),
  loseWorker: use(loseWorker),

  putTaskType: use(writeTaskType),
  taskTypes: use(tasks.findTaskTypes),
  taskType: use(tasks.readTaskType),
  stats: use(readStatistics),
  queues: use(tasks.findQueues),
  doctor: use(examine),
  events: use(tasks.readEvents),
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
    (...args: unknown[]) => (operation as (caller: Caller, ...args: unknown[]) => unknown)(caller, ...args),
  ])
  return Object.fromEntries(bound)
}
