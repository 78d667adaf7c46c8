import { ROOT_CONTEXT, SpanKind, trace } from '@opentelemetry/api'
import type { ClaimedTask, SettledTask } from '../protocol/tasks/sync.ts'
import { fail, inSpan, spanContextOf, tracer } from '../protocol/tracing.ts'

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
