/**
 * Traces from whoever queues a task to the handler that does it, through OpenTelemetry's API. Where nobody has
 * registered a tracer, nothing is made and nothing is stored.
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

/** The tracer, if one is registered. What the API hands out before that would make spans for nobody. */
export function tracer(): Tracer | undefined {
  const provider: TracerProvider & { getDelegateTracer?(name: string): Tracer | undefined } = trace.getTracerProvider()
  return provider.getDelegateTracer === undefined ? provider.getTracer('pawl') : provider.getDelegateTracer('pawl')
}

/** Runs `work` in a new span, of which everything that it traces is a child; the span ends when the work does. */
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

/** As W3C writes it; undefined: the span belongs to nobody's trace. */
export function traceparentOf(span: Span): string | undefined {
  const { traceId, spanId, traceFlags } = span.spanContext()
  if (!isSpanContextValid(span.spanContext())) return undefined
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
}

/** The span that a traceparent names; undefined: it names none. */
export function spanContextOf(traceparent: string): SpanContext | undefined {
  const [, traceId = '', spanId = '', flags = '0'] = traceparent.split('-')
  const found = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
  return isSpanContextValid(found) ? found : undefined
}
