/** What a request to each route may hold: its query and its body, as tables. */
import { type Field, type Fields, nested } from '../schema/check.ts'
import * as fields from './fields.ts'
import { timelineFields, troubleQueryFields } from './jobs/timeline-fields.ts'
import * as queries from './query-fields.ts'
import type { Operation } from './routes.ts'
import type { OneOutcome } from './tasks/sync.ts'

export interface Request {
  readonly query?: Fields
  /** An object of these fields. */
  readonly body?: Fields
  /** A list of such objects; where `single` is set, one alone stands for a list of one. */
  readonly list?: Field
  readonly single?: true
  /** A job spec, or the stages of one: what these may hold is said in `spec/`. */
  readonly spec?: 'job' | 'stages'
  /** Fields of the body that must be there. */
  readonly required?: readonly string[]
}

const reason: Request = { body: fields.bodyOf(fields.controlFields) }
const cancel: Request = { body: fields.bodyOf(fields.cancelFields) }
const approval: Request = { body: fields.bodyOf(fields.approveFields) }
const said = (outcome: OneOutcome): Request => ({
  body: { ...fields.fence, ...fields.settleOneFields(outcome) },
  required: ['epoch'],
})
const page: Request = { query: queries.pageFields }
const namedPage: Request = { query: queries.namedPageFields }

export const requests: Readonly<Record<Operation, Request>> = {
  submit: { spec: 'job' },
  jobs: { query: queries.jobQueryFields },
  job: {},
  patchJob: { body: fields.jobPatchFields },
  deleteJob: reason,
  startJob: reason,
  pauseJob: reason,
  resumeJob: reason,
  cancelJob: cancel,
  retryJob: { body: fields.bodyOf(fields.retryJobFields) },
  sealJob: reason,
  addStages: { spec: 'stages' },
  jobEvents: page,
  jobStages: {},
  jobArtifacts: { query: queries.artifactQueryFields },
  jobTasks: { query: queries.tasksOfFields },
  timeline: { query: timelineFields },
  troubles: { query: troubleQueryFields },
  stages: { query: queries.stageQueryFields },
  stage: {},
  stageCounts: {},
  patchStage: { body: fields.metadataFields },
  approve: approval,
  reject: approval,
  hold: reason,
  cancelStage: cancel,
  retryStage: reason,
  sealStage: reason,
  addTasks: { list: nested(fields.stageTaskFields) },
  stageEvents: page,
  stageArtifacts: { query: queries.artifactQueryFields },
  stageFiles: { query: queries.stageFilesFields },
  stageTasks: { query: queries.tasksOfFields },
  enqueueMany: { list: nested(fields.taskFields, ['type']), single: true },
  tasks: { query: queries.taskQueryFields },
  task: {},
  taskEvents: { query: queries.taskEventFields },
  attempts: {},
  logs: { query: queries.logQueryFields },
  taskArtifacts: { query: queries.artifactQueryFields },
  lineage: { query: queries.lineageFields },
  patchTask: { body: fields.metadataFields },
  cancel: { body: fields.bodyOf(fields.cancelTaskFields) },
  resume: reason,
  retry: reason,
  deadLetter: { body: fields.bodyOf(fields.deadLetterFields), required: ['reasonCode'] },
  deleteTask: reason,
  deadLetters: { query: queries.deadLetterQueryFields },
  redriveProgress: {},
  redrive: { body: fields.redriveFields },
  sync: { body: fields.syncFields },
  claims: { body: fields.claimFields, required: ['worker', 'queues'] },
  start: { body: fields.fence, required: ['epoch'] },
  heartbeat: { body: { ...fields.fence, ...fields.heartbeatFields }, required: ['epoch'] },
  succeed: said('succeeded'),
  fail: said('failed'),
  skip: said('skipped'),
  release: said('released'),
  cancelled: said('cancelled'),
  reportArtifacts: { body: { ...fields.fence, ...fields.artifactsFields }, required: ['epoch', 'artifacts'] },
  workers: { query: queries.workerQueryFields },
  loseWorker: { body: fields.bodyOf(fields.loseWorkerFields) },
  putTaskType: { body: fields.taskTypeRecordFields },
  taskType: {},
  taskTypes: { query: queries.taskTypeQueryFields },
  stats: { query: queries.statsQueryFields },
  queues: namedPage,
  doctor: {},
  events: { query: queries.feedFields },
  createKey: { body: fields.keyFields, required: ['name'] },
  keys: {},
  revokeKey: reason,
}
