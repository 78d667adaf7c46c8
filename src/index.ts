export { startBabysitter } from './babysitter/babysitter.ts'
export { type ClientOptions, connect, type PawlClient } from './client/client.ts'
export { defineConfig, type PawlConfig } from './config/config.ts'
export { type AnyPawl, type Pawl, type PawlOptions, pawl } from './engine/engine.ts'
export {
  type Entity,
  isSuccessfulTerminal,
  isTerminal,
  type StateOfEntity,
  terminalStates,
  wasExecuted,
} from './kernel/lifecycles.ts'
export { Problem, type ProblemCode, problems } from './kernel/problem.ts'
export type { CallerTransaction } from './kernel/transactions.ts'
export type {
  Examination,
  Finding,
  KeyView,
  LostWorkerView,
  MadeKey,
  Me,
  NewKey,
  QueueView,
  TaskTypeQuery,
  WorkerQuery,
  WorkerView,
} from './protocol/admin/admin.ts'
export type {
  DepthPoint,
  LeftOut,
  PhaseStats,
  QueueDepth,
  StatsPoint,
  StatsQuery,
  StatsView,
  TypeStats,
} from './protocol/admin/stats.ts'
export type {
  ApproveCall,
  Call,
  CancelCall,
  ControlCall,
  DeadLetterCall,
  EndQuery,
  Fenced,
  LoseWorkerCall,
  Numbered,
  PageQuery,
  RetryJobCall,
} from './protocol/call-options.ts'
export {
  defineJob,
  type JobBuilder,
  type JobDefinition,
  type Stage,
  type StageOptions,
} from './protocol/jobs/define-job.ts'
export type {
  Added,
  AddedStage,
  JobOrder,
  JobQuery,
  JobView,
  NewStageTask,
  Progress,
  StageFiles,
  StageQuery,
  StageView,
  TaskCounts,
} from './protocol/jobs/jobs.ts'
export { cel, type Ref, type Refs } from './protocol/jobs/refs.ts'
export type { PawlApi } from './protocol/operations.ts'
export type { LogLevel, LogLine, LogLineView, LogPage, LogQuery } from './protocol/tasks/logs.ts'
export type { Enqueue, OutputOf, PayloadOf, TaskItem, TaskName, TaskRegistry } from './protocol/tasks/registry.ts'
export {
  JobFailed,
  type JobHandle,
  type ResultOptions,
  type Stored,
  TaskFailed,
  type TaskHandle,
} from './protocol/tasks/results.ts'
export type {
  BeatOfTask,
  CancelNotice,
  ClaimedTask,
  ClaimsRequest,
  HeartbeatAnswer,
  HeldTask,
  OneOutcome,
  Refusal,
  ReportOf,
  SettledTask,
  SpawnedTask,
  StartedTask,
  SyncAnswer,
  SyncPort,
  SyncRequest,
} from './protocol/tasks/sync.ts'
export type {
  AttemptView,
  DeadLetterView,
  EventView,
  FeedEvent,
  FeedPage,
  FeedQuery,
  JobPatch,
  MetadataPatch,
  NamedTaskType,
  NewTaskItem,
  Page,
  QueuedTask,
  RetryOptions,
  TaskEventQuery,
  TaskOptions,
  TaskQuery,
  TasksOfQuery,
  TaskTypeOptions,
  TaskTypeRecord,
  TaskView,
} from './protocol/tasks/tasks.ts'
export type { FolderSpec, InputSpec, RunSpec } from './spec/file-fields.ts'
export type { CompensateSpec, GateSpec, JobSpec, StageSpec } from './spec/job-spec.ts'
export { type NamedJob, parseJobSpec } from './spec/parse-job-spec.ts'
export * from './worker/index.ts'
