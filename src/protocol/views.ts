/** What answers hold, for machines. That no field of a view is left out, the compiler sees; that answers fit, the tests. */

import { reasonCodes, steps } from '../kernel/decide.ts'
import { jobLifecycle } from '../kernel/job.ts'
import { statesOf } from '../kernel/lifecycle.ts'
import { problems, type Refused } from '../kernel/problem.ts'
import { stageLifecycle } from '../kernel/stage.ts'
import { taskLifecycle } from '../kernel/task.ts'
import type { Schema } from '../schema/check.ts'
import { operationViews } from './admin/operate-views.ts'
import { artifactViews, stageFiles } from './files/artifact-views.ts'
import type { Added, JobView, Progress, StageView } from './jobs/jobs.ts'
import { timelineViews } from './jobs/timeline-views.ts'
import { anything, at, figure, flag, id, list, object, orNull, ref, text, view, whole, words } from './shapes.ts'
import type { RedriveAnswer, RedriveProgress } from './tasks/dead-letters.ts'
import { type LogLineView, logLevels } from './tasks/logs.ts'
import type { CancelNotice, ClaimedTask, HeartbeatAnswer, Refusal, SyncAnswer } from './tasks/sync.ts'
import type { AttemptView, EventView, FeedEvent, FeedPage, QueuedTask, TaskView } from './tasks/tasks.ts'

const error = {
  type: 'object',
  required: ['message'],
  properties: {
    message: text,
    name: text,
    stack: text,
    output: text,
    permanent: flag,
    retryInSeconds: figure,
    reasonCode: text,
    step: text,
  },
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
  version: { type: 'integer', const: 1 },
}

const stage: Record<keyof StageView, Schema> = {
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
  files: orNull(stageFiles),
  needs: list(text),
  open: words('sealed', 'open', 'untilDone'),
  progress,
  output: anything,
  endsAs: orNull(text),
  cause: orNull(text),
  calledOffFrom: orNull(words(...statesOf(stageLifecycle))),
  error: orNull({ type: 'object', required: ['message'], properties: { message: text } }),
  held: flag,
  gate: orNull({ type: 'object', properties: { approvers: whole, ask: orNull(text), until: orNull(at) } }),
  data: anything,
  traceparent: orNull(text),
  approvals: list({ type: 'object', required: ['by'], properties: { by: text, comment: text, data: anything } }),
  metadata: object,
  createdAt: at,
  changedAt: at,
  startedAt: orNull(at),
  endedAt: orNull(at),
}

const job: Record<keyof JobView, Schema> = {
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
  tracestate: orNull(text),
  metadata: object,
  clonedFrom: orNull(id),
  leaseSeconds: orNull(figure),
  deadlineAt: orNull(at),
  createdAt: at,
  changedAt: at,
  startedAt: orNull(at),
  endedAt: orNull(at),
  stages: list(ref('Stage')),
}

const refused = view<Refused>({ id: text, code: text, message: text })

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
    tries: whole,
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
    settings: object,
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
  TaskCounts: { type: 'object', propertyNames: words(...statesOf(taskLifecycle)), additionalProperties: whole },
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
  Stage: view<StageView>(stage),
  StageWithAdded: view<StageView & Added>({ ...stage, added: list(id) }),
  Job: view<JobView>(job),
  JobWithAdded: view<JobView & Added>({ ...job, added: list(id) }),
  ...artifactViews,
  ...operationViews,
  ...timelineViews,
  LogLine: view<LogLineView>({
    n: whole,
    epoch: whole,
    at,
    level: words(...logLevels),
    message: text,
    facts: orNull(object),
  }),
  RedriveProgress: view<RedriveProgress>({
    id,
    state: words('running', 'done'),
    actor: text,
    reason: orNull(text),
    total: whole,
    redriven: whole,
    refused: whole,
    refusals: list(refused),
    createdAt: at,
    endedAt: orNull(at),
  }),
  Heartbeat: view<HeartbeatAnswer>({
    cancel: orNull({ type: 'object', properties: { mode: words('soft'), graceSeconds: figure } }),
    leaseUntil: at,
  }),
  Redrive: view<RedriveAnswer>({
    id: orNull(id),
    dryRun: flag,
    state: words('running', 'done'),
    total: whole,
    redriven: list(id),
    refused: list(refused),
  }),
  ClaimedTask: view<ClaimedTask>({
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
  SyncAnswer: view<SyncAnswer>({
    waitedMs: figure,
    claimed: list(ref('ClaimedTask')),
    refused: list(view<Refusal>({ id: text, epoch: whole, code: words(...Object.keys(problems)), message: text })),
    cancel: list(view<CancelNotice>({ id, epoch: whole, mode: words('soft'), graceSeconds: figure })),
  }),
  FeedPage: view<FeedPage>({ items: list(ref('FeedEvent')), next: text, more: flag }),
} satisfies Record<string, Schema>
