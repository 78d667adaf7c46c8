/** What each operation answers. */
import type { Schema } from '../schema/check.ts'
import type { Operation } from './routes.ts'
import { list, object, orNull, ref, text, whole } from './shapes.ts'
import type { views } from './views.ts'

const pageOf = (item: Schema, more: Readonly<Record<string, Schema>> = {}): Schema => ({
  type: 'object',
  properties: { items: list(item), next: orNull(text), ...more },
  required: ['items', 'next', ...Object.keys(more)],
  additionalProperties: false,
})

const page = (name: keyof typeof views, more: Readonly<Record<string, Schema>> = {}) => pageOf(ref(name), more)

/** One that says how many there are in all, where that was asked for. */
const numbered = (name: keyof typeof views): Schema => ({
  ...page(name, { total: whole }),
  required: ['items', 'next'],
})

const job = ref('Job')
const stage = ref('Stage')
const task = ref('Task')

/** What each operation answers; nothing: no body. */
export const answers: Readonly<Record<Operation, Schema | undefined>> = {
  submit: job,
  jobs: numbered('Job'),
  job,
  patchJob: job,
  deleteJob: undefined,
  startJob: job,
  pauseJob: job,
  resumeJob: job,
  cancelJob: job,
  retryJob: job,
  sealJob: job,
  addStages: ref('JobWithAdded'),
  jobEvents: page('Event'),
  jobStages: page('Stage'),
  jobArtifacts: page('Artifact'),
  jobTasks: numbered('Task'),
  timeline: ref('Timeline'),
  troubles: list(ref('Trouble')),
  stages: numbered('Stage'),
  stage,
  stageCounts: ref('TaskCounts'),
  patchStage: stage,
  approve: stage,
  reject: stage,
  hold: stage,
  cancelStage: stage,
  retryStage: stage,
  sealStage: stage,
  addTasks: ref('StageWithAdded'),
  stageEvents: page('Event'),
  stageArtifacts: page('Artifact'),
  stageFiles: page('StageFile'),
  stageTasks: numbered('Task'),
  enqueueMany: { anyOf: [ref('QueuedTask'), list(ref('QueuedTask'))] },
  tasks: numbered('Task'),
  task,
  taskEvents: page('Event'),
  attempts: list(ref('Attempt')),
  logs: page('LogLine', { behind: text }),
  taskArtifacts: page('Artifact'),
  lineage: ref('Lineage'),
  patchTask: task,
  cancel: task,
  resume: task,
  retry: task,
  deadLetter: task,
  deleteTask: undefined,
  deadLetters: page('Task'),
  redriveProgress: ref('RedriveProgress'),
  redrive: ref('Redrive'),
  sync: ref('SyncAnswer'),
  claims: list(ref('ClaimedTask')),
  start: task,
  heartbeat: ref('Heartbeat'),
  succeed: task,
  fail: task,
  skip: task,
  release: task,
  cancelled: task,
  reportArtifacts: list(ref('Artifact')),
  workers: page('Worker'),
  loseWorker: ref('LostWorker'),
  putTaskType: undefined,
  taskType: object,
  taskTypes: pageOf({ type: 'object', required: ['type'], properties: { type: text } }),
  stats: ref('Stats'),
  queues: page('Queue'),
  doctor: ref('Examination'),
  events: ref('FeedPage'),
  createKey: ref('MadeKey'),
  keys: list(ref('Key')),
  revokeKey: ref('Key'),
}
