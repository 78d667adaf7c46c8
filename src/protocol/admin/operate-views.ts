/** What answers to operators hold, for machines. */

import { permissions, roles } from '../../kernel/role.ts'
import type { Schema } from '../../schema/check.ts'
import { at, figure, flag, id, list, orNull, text, view, whole, words } from '../shapes.ts'
import type { KeyView, MadeKey, Me } from './keys.ts'
import type { Examination, Finding, LostWorkerView, QueueView, WorkerView } from './operate.ts'
import type { DepthPoint, LeftOut, PhaseStats, StatsPoint, StatsView, TypeStats } from './stats.ts'

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
  roles: list(words(...Object.keys(roles))),
  queues: orNull(list(text)),
  createdAt: at,
  createdBy: orNull(text),
  revokedAt: orNull(at),
  revokedBy: orNull(text),
}

export const operationViews = {
  Stats: view<StatsView>({
    from: at,
    to: at,
    bucketSeconds: whole,
    lastCountedAt: orNull(at),
    types: list(view<TypeStats>(typeStats)),
    series: list(view<StatsPoint>({ at, ...typeStats })),
    queues: list(queue),
    depths: list(view<DepthPoint>({ at, queue: text, due: whole, held: whole })),
    leftOut: view<LeftOut>({ types: whole, queues: whole }),
  }),
  Queue: queue,
  Worker: view<WorkerView>({
    session: orNull(id),
    worker: text,
    queues: list(text),
    startedAt: orNull(at),
    seenAt: orNull(at),
    slots: orNull(whole),
    leases: whole,
    leasesByQueue: { type: 'object', additionalProperties: whole },
  }),
  LostWorker: view<LostWorkerView>({ worker: text, tasks: list(id) }),
  Examination: view<Examination>({
    store: text,
    healthy: flag,
    findings: list(view<Finding>({ grade: words('bad', 'warning', 'note'), what: text, todo: text })),
  }),
  Me: view<Me>({
    name: orNull(text),
    role: words(...Object.keys(roles)),
    roles: list(words(...Object.keys(roles))),
    permissions: list(words(...Object.keys(permissions))),
    queues: orNull(list(text)),
  }),
  Key: view<KeyView>(key),
  MadeKey: view<MadeKey>({ ...key, secret: text }),
}
