export { startBabysitter } from './babysitter/babysitter.ts'
export { type ClientOptions, connect, type PawlClient } from './client/client.ts'
export { defineConfig, type PawlConfig } from './config/config.ts'
export { type Pawl, type PawlOptions, pawl } from './engine/engine.ts'
export { Problem, type ProblemCode, problems } from './kernel/problem.ts'
export * from './kernel/terminal.ts'
export type { KeyView, MadeKey, Me, NewKey } from './protocol/admin/keys.ts'
export type {
  Examination,
  Finding,
  LostWorkerView,
  QueueView,
  TaskTypeQuery,
  WorkerQuery,
  WorkerView,
} from './protocol/admin/operate.ts'
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
export type { PawlApi } from './protocol/api.ts'
export type {
  ApproveCall,
  Call,
  CancelCall,
  ControlCall,
  DeadLetterCall,
  Fenced,
  LoseWorkerCall,
  Numbered,
  PageQuery,
  RetryJobCall,
} from './protocol/call-options.ts'
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
export type { LogLevel, LogLine, LogLineView, LogPage, LogQuery } from './protocol/tasks/logs.ts'
export type {
  BeatOfTask,
  CancelNotice,
  ClaimedTask,
  ClaimsRequest,
  HeartbeatAnswer,
  HeldTask,
  OneOutcome,
  Refusal,
  SaidOf,
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
export type * from './spec/job-spec.ts'
export type { NamedJob } from './spec/named-job.ts'
export { parseJobSpec } from './spec/parse-job-spec.ts'
export * from './worker/index.ts'
