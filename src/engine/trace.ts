import { type Attributes, type Span, SpanKind, type Tracer } from '@opentelemetry/api'
import { inSpan, traceparentOf } from '../protocol/tracing.ts'

/** Runs an enqueue or submit in a span of its own, and passes the traceparent to store. */
export function inProducerSpan<T>(
  tracing: Tracer,
  { name, to }: { name: 'enqueue' | 'submit'; to: string },
  attributes: Attributes,
  work: (traceparent: string | undefined, span: Span) => Promise<T>,
): Promise<T> {
  const messaging = {
    'messaging.system': 'pawl',
    'messaging.operation.name': name,
    'messaging.operation.type': 'send',
  }
  const options = { kind: SpanKind.PRODUCER, attributes: { ...messaging, ...attributes } }
  return inSpan(tracing, `${name} ${to}`, options, span => work(traceparentOf(span), span))
}
