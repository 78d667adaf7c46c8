/** What a request to each route may hold: its query and its body, as tables. */
import { type Field, type Fields, nested } from '../kernel/check.ts'
import * as fields from './fields.ts'
import type { Operation } from './routes.ts'

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
const page: Request = { query: fields.pageFields }

export const requests: Readonly<Record<Operation, Request>> = {
  submit: { spec: 'job' },
  jobs: { query: fields.jobQueryFields },
  job: {},
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
  jobTasks: { query: fields.tasksOfFields },
  stages: { query: fields.stageQueryFields },
  stage: {},
  approve: approval,
  reject: approval,
  hold: reason,
  cancelStage: cancel,
  retryStage: reason,
  sealStage: reason,
  addTasks: { list: nested(fields.stageTaskFields) },
  stageEvents: page,
  stageTasks: { query: fields.tasksOfFields },
  enqueueMany: { list: nested(fields.taskFields, ['type']), single: true },
  tasks: { query: fields.taskQueryFields },
  task: {},
  taskEvents: page,
  attempts: {},
  cancel,
  resume: reason,
  retry: reason,
  deadLetter: { body: fields.bodyOf(fields.deadLetterFields), required: ['reasonCode'] },
  redrive: { body: fields.redriveFields },
  sync: { body: fields.syncFields },
  workers: { query: fields.workerQueryFields },
  putTaskType: { body: fields.taskTypeFields },
  taskType: {},
  queues: {},
  doctor: {},
  events: { query: fields.feedFields },
  createKey: { body: fields.keyFields, required: ['name', 'role'] },
  keys: {},
  revokeKey: reason,
}
