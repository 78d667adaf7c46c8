/** All attempts that this worker holds. A task that was lost and claimed again appears twice, under two epochs. */

import { ROOT_CONTEXT, SpanKind, trace } from '@opentelemetry/api'
import { type ClaimedTask, leaseOf, type SettledTask, type SyncAnswer } from '../protocol/tasks/sync.ts'
import { fail, inSpan, spanContextOf, tracer } from '../protocol/tracing.ts'
import { type Attempt, interrupt, traceOf } from './attempt.ts'
import type { WorkerSettings } from './options.ts'

export type Attempts = ReturnType<typeof makeAttempts>

export function makeAttempts({ name: worker, log }: WorkerSettings, notifier: Notifier) {
  const active = new Set<Attempt>()
  const remove = (one: Attempt): void => {
    active.delete(one)
    if (active.size === 0) notifier.notify()
  }
  const apply = ({ refused, cancel }: SyncAnswer) => {
    const byLease = new Map([...active].map(one => [leaseOf(one.task), one]))
    for (const refusal of refused) {
      const lost = byLease.get(leaseOf(refusal))
      // A task that its handler has completed is no longer held, but not lost either.
      if (lost === undefined || lost.settled !== undefined || lost.completed !== undefined) continue
      log('task.refused', { ...refusal, ...traceOf(lost), worker })
      if (refusal.code !== 'LEASE_LOST') continue
      interrupt(lost, 'lease-lost')
      // An attempt that has not started is dropped at once; a running one is dropped when it stops.
      if (lost.startedAt === undefined) remove(lost)
    }
    for (const notice of cancel) {
      const called = byLease.get(leaseOf(notice))
      if (called !== undefined) interrupt(called, 'cancelled', notice.graceSeconds)
    }
  }
  return {
    active: active as ReadonlySet<Attempt>,
    add: (one: Attempt): void => void active.add(one),
    remove,
    /** Handles lost leases and cancel requests, which any answer may contain. */
    applyAnswer(answer: SyncAnswer): void {
      if (answer.refused.length > 0 || answer.cancel.length > 0) apply(answer)
    },
  }
}

export type Notifier = ReturnType<typeof makeNotifier>

/** Wakes a waiting loop. A notification that nobody waited for wakes the next wait. */
export function makeNotifier() {
  let wake: (() => void) | undefined
  let isNotified = false
  return {
    notify(): void {
      isNotified = true
      wake?.()
    },
    async wait(ms: number): Promise<void> {
      if (!isNotified) {
        await new Promise<void>(resolve => {
          const timer = setTimeout(resolve, ms)
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
      wake = undefined
      isNotified = false
    },
  }
}

/**
 * Runs an attempt in a span, if tracing is active. The span is a child of the span that queued the task, so that one
 * trace shows every attempt, and it links to that span, for tools that follow messages by links.
 */
export function traceAttempt(task: ClaimedTask, worker: string, run: () => Promise<SettledTask>): Promise<SettledTask> {
  const tracing = tracer()
  if (tracing === undefined) return run()
  const producer = task.traceparent === null ? undefined : spanContextOf(task.traceparent)
  // Not the active context, which belongs to whatever started this worker.
  const parent = producer === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, producer)
  const options = {
    kind: SpanKind.CONSUMER,
    links: producer === undefined ? [] : [{ context: producer }],
    attributes: {
      'messaging.system': 'pawl',
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.message.id': task.id,
      ...(task.correlationId !== null && { 'messaging.message.conversation_id': task.correlationId }),
      'pawl.task.id': task.id,
      'pawl.task.type': task.type,
      'pawl.task.epoch': task.epoch,
      'pawl.task.attempt': task.attempt,
      'pawl.worker': worker,
    },
  }
  return inSpan(
    tracing,
    `process ${task.type}`,
    options,
    async span => {
      const settled = await run()
      span.setAttribute('pawl.task.outcome', settled.outcome)
      if (settled.error !== undefined) fail(span, { name: settled.error.reasonCode ?? 'Error', ...settled.error })
      return settled
    },
    parent,
  )
}
