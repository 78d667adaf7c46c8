/**
 * Traces from the program that queues a task to the handler that runs it, through OpenTelemetry's API. If no tracer is
 * registered, no span is created and nothing is stored.
 */
import {
  context,
  isSpanContextValid,
  type Span,
  type SpanContext,
  type SpanOptions,
  SpanStatusCode,
  type Tracer,
  type TracerProvider,
  trace,
} from '@opentelemetry/api'

/** The tracer, if one is registered. The API's placeholder does not count: its spans would be discarded. */
export function tracer(): Tracer | undefined {
  const provider: TracerProvider & { getDelegateTracer?(name: string): Tracer | undefined } = trace.getTracerProvider()
  return provider.getDelegateTracer === undefined ? provider.getTracer('pawl') : provider.getDelegateTracer('pawl')
}

/** Runs `work` in a new span, which ends with it. Spans that it creates are children of this one. */
export async function inSpan<T>(
  tracing: Tracer,
  name: string,
  options: SpanOptions,
  work: (span: Span) => Promise<T>,
  parent = context.active(),
): Promise<T> {
  const span = tracing.startSpan(name, options, parent)
  try {
    return await context.with(trace.setSpan(parent, span), () => work(span))
  } catch (error) {
    fail(span, error instanceof Error ? error : new Error(String(error)))
    throw error
  } finally {
    span.end()
  }
}

export function fail(span: Span, error: Error | { readonly name: string; message: string; stack?: string }): void {
  span.recordException(error)
  span.setStatus({ code: SpanStatusCode.ERROR, message: error.message })
}

/** The span as a W3C traceparent; undefined: the span is not recorded. */
export function traceparentOf(span: Span): string | undefined {
  const { traceId, spanId, traceFlags } = span.spanContext()
  if (!isSpanContextValid(span.spanContext())) return undefined
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
}

/** The span of a traceparent; undefined: the text is not a valid traceparent. */
export function spanContextOf(traceparent: string): SpanContext | undefined {
  const [, traceId = '', spanId = '', flags = '0'] = traceparent.split('-')
  const found = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
  return isSpanContextValid(found) ? found : undefined
}
