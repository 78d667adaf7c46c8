import { otherName } from '../kernel/bounded-names.ts'
import type { NewKey } from '../protocol/admin/keys.ts'
import type { StatsQuery } from '../protocol/admin/stats.ts'
import type {
  Call,
  LoseWorkerCall,
  PageQuery,
  PawlApi,
  TaskEventQuery,
  TasksOfQuery,
  TaskTypeQuery,
  WorkerQuery,
} from '../protocol/api.ts'
import type { ArtifactQuery, SaidArtifacts, StageFilesQuery } from '../protocol/files/artifacts.ts'
import type { AddedStage, JobQuery, NewStageTask } from '../protocol/jobs/jobs.ts'
import type { TimelineQuery, TroubleQuery } from '../protocol/jobs/timeline.ts'
import type { DeadLetterQuery, RedriveRequest } from '../protocol/tasks/dead-letters.ts'
import type { LogQuery } from '../protocol/tasks/logs.ts'
import type { ClaimsRequest, OneOutcome, SettledTask, SyncPort, SyncRequest } from '../protocol/tasks/sync.ts'
import type { TaskDefinition } from '../protocol/tasks/task-type.ts'
import type {
  FeedQuery,
  JobPatch,
  MetadataPatch,
  NewTaskItem,
  TaskOptions,
  TaskTypeRecord,
} from '../protocol/tasks/tasks.ts'
import type { JobSpec } from '../spec/job-spec.ts'
import type { NamedJob } from '../spec/named-job.ts'
import { type CountedNames, countByState } from '../store/admin/count-by-state.ts'
import { brokenRules } from '../store/admin/integrity.ts'
import { countDeadLetters, readTotals, type TypesToName } from '../store/admin/stats.ts'
import { clockMs } from '../store/driver/clock.ts'
import type { Sql } from '../store/driver/sql.ts'
import { feedLag } from '../store/feed/feed.ts'
import { deepestQueues, type QueuesToName } from '../store/flow/queue-depths.ts'
import { migrate } from '../store/schema/migrate.ts'
import { reasonsOf } from '../store/tasks/reasons.ts'
import { examine, type Thresholds } from './admin/doctor.ts'
import * as keys from './admin/keys.ts'
import { readStatistics } from './admin/stats.ts'
import { checkOptions } from './check.ts'
import type { CallerTransaction, Context } from './context.ts'
import { watchFeed } from './feed/feed-watch.ts'
import { type Following, follow } from './feed/follow.ts'
import { findArtifacts, findStageFiles, readLineage } from './files/read-artifacts.ts'
import * as jobControl from './jobs/job-control.ts'
import { deleteJob, retryJob } from './jobs/job-ends.ts'
import * as jobRead from './jobs/read-jobs.ts'
import { waitForInputs } from './jobs/read-jobs.ts'
import * as stageControl from './jobs/stage-control.ts'
import type { SubmitCall } from './jobs/submit.ts'
import { submitOrAdd } from './jobs/submit-or-add.ts'
import { findTroubles, readTimeline } from './jobs/timeline.ts'
import { makeContext } from './make-context.ts'
import { openStore, optionFields, type PawlOptions } from './open-store.ts'
import * as control from './tasks/control.ts'
import { deleteTask, loseWorker } from './tasks/control.ts'
import { type EnqueueCall, enqueueTasks } from './tasks/enqueue.ts'
import { readLogs } from './tasks/logs.ts'
import { mergedReports } from './tasks/merge-reports.ts'
import * as oneTask from './tasks/one-task.ts'
import { patchJob, patchStage, patchTask } from './tasks/patch.ts'
import * as read from './tasks/read-tasks.ts'
import { readRedrive, redrive } from './tasks/redrive.ts'
import { sync } from './tasks/sync.ts'
import { readTaskEvents } from './tasks/task-events.ts'
import { makeTypeRegistry } from './tasks/task-types.ts'
import { inOwnTransaction } from './unit-of-work.ts'

export type { PawlOptions } from './open-store.ts'

/** A caller's own code runs in between. */
const callersBounds = { idleSeconds: 60 }

/** Types and queues in figures, unless the caller names others. */
const unnamed = { named: [], most: 1000, others: otherName }

export type Pawl = Awaited<ReturnType<typeof pawl>>

/** Opens the engine: on a PostgreSQL server if one is named, else on the embedded store. */
export async function pawl(options: PawlOptions = {}) {
  checkOptions(options, optionFields, 'options')
  const store = await openStore(options)
  const ending = new AbortController()
  try {
    const context = makeContext(options, store, ending.signal)
    if (options.migrate !== false) await migrate(store.sql)
    return engineOf(context, async () => {
      ending.abort()
      await context.files.close()
      await store.close()
    })
  } catch (error) {
    ending.abort()
    await store.close()
    throw error
  }
}

function engineOf(context: Context, close: () => Promise<void>) {
  const types = makeTypeRegistry(context)
  const feed = watchFeed({ events: ask => engine.events(ask) })
  const engine = {
    /** Queues one task. Its payload is checked against its type's schema, if this process knows it. */
    async enqueue<In>(type: string | TaskDefinition<In>, payload: In, options: TaskOptions & EnqueueCall = {}) {
      const { tx, actor, idempotencyKey, holder, ...task } = options
      const name = typeof type === 'string' ? type : type.type
      if (typeof type !== 'string') await types.register(type, tx)
      const item: NewTaskItem = { ...task, type: name, payload }
      const call = {
        ...(tx !== undefined && { tx }),
        ...(actor !== undefined && { actor }),
        ...(idempotencyKey !== undefined && { idempotencyKey }),
        ...(holder !== undefined && { holder }),
      }
      const [queued] = await engine.enqueueMany([item], call)
      return queued!
    },
    /** Queues up to 10,000 tasks, all or none; the answers are in the order of the tasks. */
    async enqueueMany(items: readonly NewTaskItem[], call: EnqueueCall = {}) {
      await types.checkPayloads(items)
      return enqueueTasks(context, items, call)
    },
    /** Runs `work` in a transaction; pass its handle on to calls inside it. Workers hear of it once it commits. */
    transaction: <T>(work: (tx: Sql) => Promise<T>): Promise<T> => inOwnTransaction(context, work, callersBounds),
    sync: (request: Parameters<SyncPort['sync']>[0], signal?: AbortSignal) => sync(context, request, signal),
    /** The worker protocol one task at a time: what `sync` would refuse is thrown. */
    claims: (request: ClaimsRequest, call?: Call, signal?: AbortSignal) =>
      oneTask.claims(context, request, call, signal),
    take: (request: Omit<ClaimsRequest, 'start'>, call?: Call, signal?: AbortSignal) =>
      oneTask.take(context, request, call, signal),
    start: (id: string, epoch: number) => oneTask.start(context, id, epoch),
    heartbeat: (id: string, epoch: number, said?: Parameters<typeof oneTask.heartbeat>[3]) =>
      oneTask.heartbeat(context, id, epoch, said),
    succeed: (id: string, epoch: number | null, said?: oneTask.Said<'succeeded'>, queues?: readonly string[] | null) =>
      oneTask.settleOne(context, 'succeeded', id, epoch, said, { queues: queues ?? null }),
    fail: (id: string, epoch: number | null, said?: oneTask.Said<'failed'>) =>
      oneTask.settleOne(context, 'failed', id, epoch, said),
    skip: (id: string, epoch: number | null, said?: oneTask.Said<'skipped'>) =>
      oneTask.settleOne(context, 'skipped', id, epoch, said),
    release: (id: string, epoch: number | null, said?: oneTask.Said<'released'>) =>
      oneTask.settleOne(context, 'released', id, epoch, said),
    cancelled: (id: string, epoch: number | null, said?: oneTask.Said<'cancelled'>) =>
      oneTask.settleOne(context, 'cancelled', id, epoch, said),
    /** Ends an attempt for an asker whose key is for some queues, or who has read the task already. */
    settle: <Outcome extends OneOutcome>(
      outcome: Outcome,
      id: string,
      epoch: number | null,
      said: oneTask.Said<Outcome>,
      by: oneTask.SettledBy,
    ) => oneTask.settleOne(context, outcome, id, epoch, said, by),
    reportArtifacts: (id: string, epoch: number, said: SaidArtifacts) => oneTask.artifacts(context, id, epoch, said),
    completeIn: (tx: CallerTransaction, settled: SettledTask, worker: string) =>
      oneTask.completeIn(context, tx, settled, worker),
    /** A sync for a server: what many workers report at once, it writes together. `queues`: those of the asker's key. */
    merging() {
      const reports = mergedReports(context)
      return (request: SyncRequest, signal?: AbortSignal, queues: readonly string[] | null = null) =>
        sync(context, request, signal, { reports, queues })
    },
    cancel: (id: string, call?: Parameters<typeof control.cancelTask>[2]) => control.cancelTask(context, id, call),
    resume: (id: string, call?: control.ControlCall) => control.resumeTask(context, id, call),
    retry: (id: string, call?: control.ControlCall) => control.retryTask(context, id, call),
    deadLetter: (id: string, call: control.DeadLetterCall) => control.deadLetterTask(context, id, call),
    deleteTask: (id: string, call?: control.ControlCall) => deleteTask(context, id, call),
    /** Dead letters, newest first. */
    deadLetters: (query?: DeadLetterQuery) => read.findDeadLetters(context, query),
    redrive: (request: RedriveRequest, call?: control.ControlCall) => redrive(context, request, call),
    redriveProgress: (id: string) => readRedrive(context, id),
    /**
     * Submits a job: a spec as an object, as YAML or JSON text, or the name of a pipeline. All of it or nothing.
     * `queues`: those of the asker's key.
     */
    submit: (spec: JobSpec | NamedJob | string, call?: SubmitCall, queues?: readonly string[] | null) =>
      submitOrAdd(context, spec, call, queues),
    job: (id: string) => jobRead.readJob(context, id),
    jobs: (query?: JobQuery) => jobRead.findJobs(context, query),
    countTasks: (jobId: string) => jobRead.countTasksOf(context, jobId),
    /** Resolves when the inputs of a job's stages that are open have become tasks, or the time has passed. */
    inputsFound: (jobId: string, waitSeconds: number, signal?: AbortSignal) =>
      waitForInputs(context, jobId, waitSeconds, signal),
    timeline: (id: string, query?: TimelineQuery) => readTimeline(context, id, query),
    troubles: (query?: TroubleQuery) => findTroubles(context, query),
    stage: (id: string) => jobRead.readStage(context, id),
    stages: (query?: Parameters<typeof jobRead.findStages>[1]) => jobRead.findStages(context, query),
    stageCounts: (id: string) => jobRead.countTasksOfStage(context, id),
    taskCounts: (stageIds: readonly string[]) => jobRead.countTasksOfStages(context, stageIds),
    startJob: (id: string, call?: control.ControlCall) => jobControl.start(context, id, call),
    pauseJob: (id: string, call?: control.ControlCall) => jobControl.pause(context, id, call),
    resumeJob: (id: string, call?: control.ControlCall) => jobControl.resume(context, id, call),
    cancelJob: (id: string, call?: Parameters<typeof jobControl.cancel>[2]) => jobControl.cancel(context, id, call),
    retryJob: (id: string, call?: jobControl.RetryCall) => retryJob(context, id, call),
    deleteJob: (id: string, call?: control.ControlCall) => deleteJob(context, id, call),
    setJobPriority: (id: string, priority: number, call?: control.ControlCall) =>
      jobControl.setPriority(context, id, priority, call),
    /** Changes metadata (a JSON merge patch) and priority; nothing moves, and an event says who did it. */
    patchJob: (id: string, patch: JobPatch, call?: control.ControlCall) => patchJob(context, id, patch, call),
    patchStage: (id: string, patch: MetadataPatch, call?: control.ControlCall) => patchStage(context, id, patch, call),
    patchTask: (id: string, patch: MetadataPatch, call?: control.ControlCall) => patchTask(context, id, patch, call),
    sealJob: (id: string, call?: control.ControlCall) => jobControl.seal(context, id, call),
    addStages: (id: string, stages: readonly AddedStage[], call?: control.ControlCall) =>
      jobControl.addStages(context, id, stages, call),
    approve: (id: string, call?: stageControl.ApproveCall) => stageControl.approve(context, id, call),
    reject: (id: string, call?: stageControl.ApproveCall) => stageControl.reject(context, id, call),
    hold: (id: string, call?: control.ControlCall) => stageControl.hold(context, id, call),
    cancelStage: (id: string, call?: Parameters<typeof stageControl.cancelStage>[2]) =>
      stageControl.cancelStage(context, id, call),
    retryStage: (id: string, call?: control.ControlCall) => stageControl.retryStage(context, id, call),
    sealStage: (id: string, call?: control.ControlCall) => stageControl.sealStage(context, id, call),
    addTasks: (id: string, tasks: readonly NewStageTask[], call?: stageControl.AddTasksCall) =>
      stageControl.addTasks(context, id, tasks, call),
    jobEvents: (id: string, ask?: { limit?: number; cursor?: string }) => read.readEventsOf(context, 'job', id, ask),
    stageEvents: (id: string, ask?: { limit?: number; cursor?: string }) =>
      read.readEventsOf(context, 'stage', id, ask),
    jobStages: async (id: string) => ({ items: [...(await jobRead.readJob(context, id)).stages], next: null }),
    jobArtifacts: (id: string, query?: ArtifactQuery) => findArtifacts(context, 'job', id, query),
    stageFiles: (id: string, query?: StageFilesQuery) => findStageFiles(context, id, query),
    stageArtifacts: (id: string, query?: ArtifactQuery) => findArtifacts(context, 'stage', id, query),
    taskArtifacts: (id: string, query?: ArtifactQuery) => findArtifacts(context, 'task', id, query),
    /** Which inputs made a file, and what was made of it. */
    lineage: (query: { readonly uri: string }) => readLineage(context, query),
    jobTasks: (id: string, query?: TasksOfQuery) => read.findTasksOf(context, 'job', id, query),
    stageTasks: (id: string, query?: TasksOfQuery) => read.findTasksOf(context, 'stage', id, query),
    task: (id: string) => read.readTask(context, id),
    /** A task, and which key made each of its claims. */
    claimedTask: (id: string) => read.readClaimedTask(context, id),
    tasks: (query?: Parameters<typeof read.findTasks>[1]) => read.findTasks(context, query),
    taskEvents: (id: string, query?: TaskEventQuery) => readTaskEvents(context, id, query),
    attempts: (id: string) => read.readAttempts(context, id),
    /** What the task's handler has logged, attempt by attempt. */
    logs: (id: string, query?: LogQuery) => readLogs(context, id, query),
    events: (ask?: FeedQuery) => read.readEvents(context, ask),
    /** The same as it goes on, page by page. */
    follow: (ask: FeedQuery, how: Following) => follow({ events: page => engine.events(page), feed }, ask, how),
    queues: (query?: PageQuery) => read.findQueues(context, query),
    loseWorker: (worker: string, call?: LoseWorkerCall) => loseWorker(context, worker, call),
    workers: (query?: WorkerQuery) => read.findWorkers(context, query),
    /** How often and how fast tasks move, by type and over time, as far as the babysitter has counted. */
    stats: (query?: StatsQuery) => readStatistics(context, query),
    /** For metrics: what the servers on one database agree on. */
    totals: async (types: TypesToName = unnamed, queues: QueuesToName = unnamed) => ({
      moves: await readTotals(context.sql, types),
      queues: await deepestQueues(context.sql, queues),
      deadLetters: await countDeadLetters(context.sql),
      feedLagSeconds: await feedLag(context.sql),
    }),
    /** The deepest queues, and all others as one. */
    deepestQueues: (names: QueuesToName) => deepestQueues(context.sql, names),
    /** Why each of these tasks is in its state, as far as that was said. */
    reasonsOf: (ids: readonly string[]) => reasonsOf(context.sql, ids),
    /** For metrics: how many jobs, stages and tasks are in each state. */
    countsByState: (names: CountedNames) => countByState(context.sql, names),
    /** Teaches the engine a type: its schema for this process, its settings for everyone. */
    register: (definition: TaskDefinition) => types.register(definition),
    putTaskType: (type: string, options: TaskTypeRecord) => types.put(type, options),
    taskType: (type: string) => read.readTaskType(context, type),
    taskTypes: (query?: TaskTypeQuery) => read.findTaskTypes(context, query),
    createKey: (key: NewKey, call?: Call) => keys.createKey(context, key, call),
    keys: () => keys.findKeys(context),
    revokeKey: (id: string, call?: Call) => keys.revokeKey(context, id, call),
    /** Whose key this is; undefined: nobody's, or one that was revoked. */
    keyOf: (secret: string) => keys.keyOf(context, secret),
    anyKeys: () => keys.anyKeys(context),
    /** The queues that these tasks are in. */
    queuesOf: (ids: readonly unknown[]) => read.readQueuesOf(context, ids),
    /** The one clock that counts, in milliseconds. */
    clock: () => clockMs(context.sql),
    /** Resolves if the store accepts writes; else throws the problem, within a second. */
    ready: () => context.ready(),
    brokenRules: () => brokenRules(context.sql),
    doctor: (thresholds?: Partial<Thresholds>) => examine(context, thresholds),
    context,
    close,
    [Symbol.asyncDispose]: close,
  }
  return engine satisfies PawlApi
}
