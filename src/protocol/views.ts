/** What answers hold, for machines. That no field of a view is left out, the compiler sees; that answers fit, the tests. */
import type { Schema } from '../kernel/check.ts'
import { reasonCodes, steps } from '../kernel/decide.ts'
import { jobLifecycle } from '../kernel/job.ts'
import { statesOf } from '../kernel/lifecycle.ts'
import { problems } from '../kernel/problem.ts'
import { roles } from '../kernel/role.ts'
import { stageLifecycle } from '../kernel/stage.ts'
import { taskLifecycle } from '../kernel/task.ts'
import type { JobView, Progress, StageView } from './jobs.ts'
import type { KeyView, MadeKey } from './keys.ts'
import type { Examination, Finding, QueueView, WorkerView } from './operations.ts'
import type { Operation } from './routes.ts'
import type { CancelNotice, ClaimedTask, Refusal, SyncAnswer } from './sync.ts'
import type { AttemptView, EventView, FeedEvent, FeedPage, QueuedTask, RedriveAnswer, TaskView } from './tasks.ts'

const text = { type: 'string' }
const whole = { type: 'integer' }
const figure = { type: 'number' }
const flag = { type: 'boolean' }
const id = { type: 'string', format: 'uuid' }
const at = { type: 'string', format: 'date-time' }
const anything = {}
const object = { type: 'object' }
const orNull = (schema: Schema): Schema => ({ anyOf: [schema, { type: 'null' }] })
const list = (items: Schema): Schema => ({ type: 'array', items })
const words = (...all: readonly string[]): Schema => ({ enum: all })
const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })

/** Every field is there; those that are not, are named. */
function view<View>(properties: Record<keyof View & string, Schema>, optional: readonly (keyof View & string)[] = []) {
  const required = (Object.keys(properties) as (keyof View & string)[]).filter(name => !optional.includes(name))
  return { type: 'object', properties, required, additionalProperties: false }
}

const error = {
  type: 'object',
  required: ['message'],
  properties: { message: text, stack: text, permanent: flag, retryInSeconds: figure, reasonCode: text, step: text },
}

const progress = view<Progress>({
  total: whole,
  good: whole,
  bad: whole,
  partial: whole,
  skipped: whole,
  percent: whole,
})

const event: Record<keyof EventView, Schema> = {
  id: text,
  entity: words('job', 'stage', 'task', 'artifact'),
  entityId: id,
  jobId: orNull(id),
  seq: whole,
  type: text,
  from: orNull(text),
  to: text,
  ts: at,
  actor: text,
  cause: orNull(text),
  correlationId: orNull(text),
  traceId: orNull(text),
  epoch: whole,
  payload: object,
  version: { const: 1 },
}

const key: Record<keyof KeyView, Schema> = {
  id,
  name: text,
  role: words(...Object.keys(roles)),
  queues: orNull(list(text)),
  createdAt: at,
  revokedAt: orNull(at),
}

export const views = {
  Task: view<TaskView>({
    id,
    queue: text,
    type: text,
    state: words(...statesOf(taskLifecycle)),
    priority: whole,
    round: whole,
    epoch: whole,
    seq: whole,
    failures: whole,
    losses: whole,
    runAt: at,
    createdAt: at,
    changedAt: at,
    startedAt: orNull(at),
    endedAt: orNull(at),
    leaseUntil: orNull(at),
    expireAt: orNull(at),
    keepUntil: orNull(at),
    cancelRequestedAt: orNull(at),
    owner: orNull(text),
    jobId: orNull(id),
    stageId: orNull(id),
    dedupeKey: orNull(text),
    correlationId: orNull(text),
    traceparent: orNull(text),
    payload: anything,
    metadata: object,
    progress: anything,
    checkpoint: anything,
    output: anything,
    partial: flag,
    error: orNull(error),
    deadLetter: orNull({
      type: 'object',
      properties: {
        reasonCode: words(...reasonCodes),
        step: words(...steps),
        lastError: error,
        attempts: whole,
        lastOwner: orNull(text),
        lastLeaseExpiresAt: orNull(at),
        correlationId: orNull(text),
      },
      required: ['reasonCode', 'lastError', 'attempts', 'lastOwner', 'lastLeaseExpiresAt', 'correlationId'],
    }),
  }),
  QueuedTask: view<QueuedTask>({ id, state: words(...statesOf(taskLifecycle)), deduplicated: flag }),
  Event: view<EventView>(event),
  FeedEvent: view<FeedEvent>({ ...event, cursor: text }),
  Attempt: view<AttemptView>({
    epoch: whole,
    worker: text,
    claimedAt: at,
    startedAt: orNull(at),
    endedAt: orNull(at),
    outcome: orNull(text),
    cause: orNull(text),
    error: orNull(error),
  }),
  Stage: view<StageView>({
    id,
    jobId: id,
    name: text,
    ordinal: whole,
    kind: words('work', 'undo'),
    state: words(...statesOf(stageLifecycle)),
    round: whole,
    seq: whole,
    task: orNull(text),
    queue: text,
    needs: list(text),
    open: words('sealed', 'open', 'untilDone'),
    progress,
    endsAs: orNull(text),
    cause: orNull(text),
    error: orNull({ type: 'object', required: ['message'], properties: { message: text } }),
    held: flag,
    gate: orNull({ type: 'object', properties: { approvers: whole, ask: orNull(text), until: orNull(at) } }),
    approvals: list({ type: 'object', required: ['by'], properties: { by: text, comment: text, data: anything } }),
    metadata: object,
    createdAt: at,
    changedAt: at,
    endedAt: orNull(at),
  }),
  Job: view<JobView>({
    id,
    name: text,
    state: words(...statesOf(jobLifecycle)),
    round: whole,
    seq: whole,
    priority: whole,
    open: words('sealed', 'open', 'untilDone'),
    input: anything,
    progress,
    endsAs: orNull(text),
    cause: orNull(text),
    compensated: flag,
    correlationId: orNull(text),
    traceparent: orNull(text),
    metadata: object,
    clonedFrom: orNull(id),
    deadlineAt: orNull(at),
    createdAt: at,
    changedAt: at,
    endedAt: orNull(at),
    stages: list(ref('Stage')),
  }),
  Redrive: view<RedriveAnswer>({
    dryRun: flag,
    redriven: list(id),
    refused: list({
      type: 'object',
      properties: { id, code: text, message: text },
      required: ['id', 'code', 'message'],
    }),
  }),
  SyncAnswer: view<SyncAnswer>({
    waitedMs: figure,
    claimed: list(
      view<ClaimedTask>({
        id,
        epoch: whole,
        type: text,
        payload: anything,
        attempt: whole,
        checkpoint: anything,
        careful: flag,
        leaseUntil: at,
        leaseSeconds: figure,
        heartbeatSeconds: orNull(figure),
        timeoutSeconds: orNull(figure),
        correlationId: orNull(text),
        traceparent: orNull(text),
      }),
    ),
    refused: list(view<Refusal>({ id: text, epoch: whole, code: words(...Object.keys(problems)), message: text })),
    cancel: list(view<CancelNotice>({ id, epoch: whole, mode: words('soft'), graceSeconds: figure })),
  }),
  Queue: view<QueueView>({ queue: text, due: whole, scheduled: whole, held: whole, oldestSeconds: orNull(figure) }),
  Worker: view<WorkerView>({ session: id, worker: text, queues: list(text), startedAt: at, seenAt: at }),
  Examination: view<Examination>({
    store: text,
    healthy: flag,
    findings: list(view<Finding>({ grade: words('bad', 'warning', 'note'), what: text, todo: text })),
  }),
  Key: view<KeyView>(key),
  MadeKey: view<MadeKey>({ ...key, secret: text }),
  FeedPage: view<FeedPage>({ items: list(ref('FeedEvent')), next: text }),
} satisfies Record<string, Schema>

const page = (name: keyof typeof views): Schema => ({
  type: 'object',
  properties: { items: list(ref(name)), next: orNull(text) },
  required: ['items', 'next'],
  additionalProperties: false,
})

const job = ref('Job')
const stage = ref('Stage')
const task = ref('Task')

/** What each operation answers; nothing: no body. */
export const answers: Readonly<Record<Operation, Schema | undefined>> = {
  submit: job,
  jobs: page('Job'),
  job,
  deleteJob: undefined,
  startJob: job,
  pauseJob: job,
  resumeJob: job,
  cancelJob: job,
  retryJob: job,
  sealJob: job,
  addStages: job,
  jobEvents: page('Event'),
  jobStages: page('Stage'),
  jobTasks: page('Task'),
  stages: page('Stage'),
  stage,
  approve: stage,
  reject: stage,
  hold: stage,
  cancelStage: stage,
  retryStage: stage,
  sealStage: stage,
  addTasks: stage,
  stageEvents: page('Event'),
  stageTasks: page('Task'),
  enqueueMany: { anyOf: [ref('QueuedTask'), list(ref('QueuedTask'))] },
  tasks: page('Task'),
  task,
  taskEvents: page('Event'),
  attempts: list(ref('Attempt')),
  cancel: task,
  resume: task,
  retry: task,
  deadLetter: task,
  redrive: ref('Redrive'),
  sync: ref('SyncAnswer'),
  workers: list(ref('Worker')),
  putTaskType: undefined,
  taskType: object,
  queues: list(ref('Queue')),
  doctor: ref('Examination'),
  events: ref('FeedPage'),
  createKey: ref('MadeKey'),
  keys: list(ref('Key')),
  revokeKey: ref('Key'),
}
