/** What answers hold, for machines. That no field of a view is left out, the compiler sees; that answers fit, the tests. */

import type { Schema } from '../kernel/check.ts'
import { reasonCodes, steps } from '../kernel/decide.ts'
import { jobLifecycle } from '../kernel/job.ts'
import { statesOf } from '../kernel/lifecycle.ts'
import { problems, type Refused } from '../kernel/problem.ts'
import { roles } from '../kernel/role.ts'
import { stageLifecycle } from '../kernel/stage.ts'
import { taskLifecycle } from '../kernel/task.ts'
import { artifactViews } from './artifact-views.ts'
import type { JobView, Progress, StageView } from './jobs.ts'
import type { KeyView, MadeKey } from './keys.ts'
import { type LogLineView, logLevels } from './logs.ts'
import type { Examination, Finding, QueueView, WorkerView } from './operations.ts'
import { anything, at, figure, flag, id, list, object, orNull, ref, text, view, whole, words } from './shapes.ts'
import type { PhaseStats, StatsPoint, StatsView, TypeStats } from './stats.ts'
import type { CancelNotice, ClaimedTask, HeartbeatAnswer, Refusal, SyncAnswer } from './sync.ts'
import type {
  AttemptView,
  EventView,
  FeedEvent,
  FeedPage,
  QueuedTask,
  RedriveAnswer,
  RedriveProgress,
  TaskView,
} from './tasks.ts'

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

const refused = view<Refused>({ id: text, code: text, message: text })

const queue = view<QueueView>({
  queue: text,
  due: whole,
  scheduled: whole,
  paused: whole,
  held: whole,
  oldestSeconds: orNull(figure),
})

const phase = view<PhaseStats>({
  count: whole,
  meanSeconds: orNull(figure),
  p50Seconds: orNull(figure),
  p95Seconds: orNull(figure),
})

const typeStats: Record<keyof TypeStats, Schema> = {
  type: text,
  queued: whole,
  claimed: whole,
  started: whole,
  succeeded: whole,
  skipped: whole,
  failed: whole,
  cancelled: whole,
  expired: whole,
  deadLettered: whole,
  failures: whole,
  retried: whole,
  lost: whole,
  queuedPerSecond: figure,
  endedPerSecond: figure,
  queue: phase,
  run: phase,
}

const key: Record<keyof KeyView, Schema> = {
  id,
  name: text,
  role: words(...Object.keys(roles)),
  queues: orNull(list(text)),
  createdAt: at,
  createdBy: orNull(text),
  revokedAt: orNull(at),
  revokedBy: orNull(text),
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
  ...artifactViews,
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
  Stats: view<StatsView>({
    from: at,
    to: at,
    bucketSeconds: whole,
    lastCountedAt: orNull(at),
    types: list(view<TypeStats>(typeStats)),
    series: list(view<StatsPoint>({ at, ...typeStats })),
    queues: list(queue),
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
  Queue: queue,
  Worker: view<WorkerView>({
    session: orNull(id),
    worker: text,
    queues: list(text),
    startedAt: orNull(at),
    seenAt: orNull(at),
    leases: whole,
  }),
  Examination: view<Examination>({
    store: text,
    healthy: flag,
    findings: list(view<Finding>({ grade: words('bad', 'warning', 'note'), what: text, todo: text })),
  }),
  Key: view<KeyView>(key),
  MadeKey: view<MadeKey>({ ...key, secret: text }),
  FeedPage: view<FeedPage>({ items: list(ref('FeedEvent')), next: text, more: flag }),
} satisfies Record<string, Schema>
