/** What a request to each route may hold: its query and its body, as tables. */
import { type Field, type Fields, nested, number } from '../kernel/check.ts'
import * as fields from './fields.ts'
import type { Operation } from './routes.ts'
import type { OneOutcome } from './sync.ts'
import { timelineFields, troubleQueryFields } from './timeline-fields.ts'

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

const epoch = { epoch: number({ from: 0, to: 2 ** 31 - 1, whole: true }) }
const reason: Request = { body: fields.bodyOf(fields.controlFields) }
const cancel: Request = { body: fields.bodyOf(fields.cancelFields) }
const approval: Request = { body: fields.bodyOf(fields.approveFields) }
const said = (outcome: OneOutcome): Request => ({
  body: { ...epoch, ...fields.settleOneFields(outcome) },
  required: ['epoch'],
})
const page: Request = { query: fields.pageFields }

export const requests: Readonly<Record<Operation, Request>> = {
  submit: { spec: 'job' },
  jobs: { query: fields.jobQueryFields },
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
  jobArtifacts: { query: fields.artifactQueryFields },
  jobTasks: { query: fields.tasksOfFields },
  timeline: { query: timelineFields },
  troubles: { query: troubleQueryFields },
  stages: { query: fields.stageQueryFields },
  stage: {},
  patchStage: { body: fields.metadataFields },
  approve: approval,
  reject: approval,
  hold: reason,
  cancelStage: cancel,
  retryStage: reason,
  sealStage: reason,
  addTasks: { list: nested(fields.stageTaskFields) },
  stageEvents: page,
  stageArtifacts: { query: fields.artifactQueryFields },
  stageFiles: { query: fields.stageFilesFields },
  stageTasks: { query: fields.tasksOfFields },
  enqueueMany: { list: nested(fields.taskFields, ['type']), single: true },
  tasks: { query: fields.taskQueryFields },
  task: {},
  taskEvents: page,
  attempts: {},
  logs: { query: fields.logQueryFields },
  taskArtifacts: { query: fields.artifactQueryFields },
  lineage: { query: fields.lineageFields },
  patchTask: { body: fields.metadataFields },
  cancel,
  resume: reason,
  retry: reason,
  deadLetter: { body: fields.bodyOf(fields.deadLetterFields), required: ['reasonCode'] },
  deadLetters: { query: fields.deadLetterQueryFields },
  redriveProgress: {},
  redrive: { body: fields.redriveFields },
  sync: { body: fields.syncFields },
  claims: { body: fields.claimFields, required: ['worker', 'queues'] },
  start: { body: epoch, required: ['epoch'] },
  heartbeat: { body: { ...epoch, ...fields.heartbeatFields }, required: ['epoch'] },
  succeed: said('succeeded'),
  fail: said('failed'),
  skip: said('skipped'),
  release: said('released'),
  cancelled: said('cancelled'),
  reportArtifacts: { body: { ...epoch, ...fields.artifactsFields }, required: ['epoch', 'artifacts'] },
  workers: { query: fields.workerQueryFields },
  putTaskType: { body: fields.taskTypeFields },
  taskType: {},
  stats: { query: fields.statsQueryFields },
  queues: {},
  doctor: {},
  events: { query: fields.feedFields },
  createKey: { body: fields.keyFields, required: ['name', 'role'] },
  keys: {},
  revokeKey: reason,
}
