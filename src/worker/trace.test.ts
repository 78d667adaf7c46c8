/** One tracer for the process, as in an application. The spans of a test are identified by the names of their tasks. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AlwaysOffSampler,
  BasicTracerProvider,
  InMemorySpanExporter,
  ParentBasedSampler,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { ended, eventually } from '../../test/harness/eventually.ts'
import { fresh } from '../../test/harness/fresh.ts'
import { defineTask, type TaskContext } from './define-task.ts'
import { GiveUp } from './errors.ts'
import { startWorker } from './worker.ts'

const exporter = new InMemorySpanExporter()
/** From here on, tracing is active. */
const startTracing = () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }))
}
after(() => trace.disable())

const spanNamed = (name: string) =>
  eventually(`there is a span "${name}"`, () => exporter.getFinishedSpans().find(span => span.name === name))
const nameOf = (span: ReadableSpan) => [span.spanContext().traceId, span.spanContext().spanId]
const traceparentOf = (span: ReadableSpan) => `00-${nameOf(span).join('-')}-01`

test('where nobody traces, nothing is made and nothing is stored', async t => {
  const { engine } = await fresh(t)
  const silent = defineTask({ type: 'silent', handler: () => undefined })
  await using _worker = startWorker(engine, [silent])
  const { id } = await engine.enqueue(silent, null)
  assert.equal((await ended(engine, id)).traceparent, null)
  assert.deepEqual(exporter.getFinishedSpans(), [])
})

test('one trace leads from whoever queued a task to its handler, and on to what that queues', async t => {
  startTracing()
  const { engine } = await fresh(t)
  const child = defineTask({ type: 'child', handler: () => undefined })
  const parent = defineTask({
    type: 'parent',
    handler: async () => (await engine.enqueue(child, null)).id,
  })
  await using worker = startWorker(engine, [parent, child])
  const request = trace.getTracer('test').startSpan('request')
  const { id } = await context.with(trace.setSpan(context.active(), request), () =>
    engine.enqueue(parent, null, { correlationId: 'order-7' }),
  )
  request.end()
  const { output, traceparent } = await ended(engine, id)
  await ended(engine, output as string)
  const [enqueue, process] = [await spanNamed('enqueue parent'), await spanNamed('process parent')]
  assert.equal(enqueue.parentSpanContext?.spanId, request.spanContext().spanId)
  assert.equal(traceparent, traceparentOf(enqueue))
  assert.equal(process.parentSpanContext?.spanId, enqueue.spanContext().spanId)
  assert.deepEqual(
    process.links.map(link => [link.context.traceId, link.context.spanId]),
    [nameOf(enqueue)],
  )
  assert.deepEqual([enqueue.kind, process.kind], [SpanKind.PRODUCER, SpanKind.CONSUMER])
  assert.deepEqual(
    [enqueue.attributes['messaging.destination.name'], enqueue.attributes['pawl.task.id']],
    ['parent', id],
  )
  assert.deepEqual(process.attributes, {
    'messaging.system': 'pawl',
    'messaging.operation.name': 'process',
    'messaging.operation.type': 'process',
    'messaging.message.id': id,
    'messaging.message.conversation_id': 'order-7',
    'pawl.task.id': id,
    'pawl.task.type': 'parent',
    'pawl.task.epoch': 1,
    'pawl.task.attempt': 1,
    'pawl.task.outcome': 'succeeded',
    'pawl.worker': worker.name,
  })
  const last = await spanNamed('process child')
  assert.equal(last.spanContext().traceId, request.spanContext().traceId)
  assert.equal((await spanNamed('enqueue child')).parentSpanContext?.spanId, process.spanContext().spanId)
})

test('a span of an attempt that failed says how, and a retry has a span of its own', async t => {
  startTracing()
  const { engine } = await fresh(t)
  const failing = defineTask({
    type: 'failing',
    retry: { delaySeconds: 0 },
    handler: (_: unknown, ctx: TaskContext) => {
      throw ctx.attempt === 1 ? new Error('the first time') : new GiveUp('for good')
    },
  })
  await using _worker = startWorker(engine, [failing])
  const { id } = await engine.enqueue(failing, null)
  await ended(engine, id)
  const spans = await eventually('both have ended', () => {
    const found = exporter.getFinishedSpans().filter(({ name }) => name === 'process failing')
    return found.length === 2 && found
  })
  assert.deepEqual(
    spans.map(({ status, events, attributes }) => [
      status,
      events[0]!.attributes!['exception.message'],
      attributes['pawl.task.attempt'],
    ]),
    [
      [{ code: SpanStatusCode.ERROR, message: 'the first time' }, 'the first time', 1],
      [{ code: SpanStatusCode.ERROR, message: 'for good' }, 'for good', 2],
    ],
  )
})

test('a traceparent that the caller gave is kept as it is, and continued', async t => {
  startTracing()
  const { engine } = await fresh(t)
  const given = defineTask({ type: 'given', handler: () => undefined })
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  await using _worker = startWorker(engine, [given])
  const { id } = await engine.enqueue(given, null, { traceparent })
  assert.equal((await ended(engine, id)).traceparent, traceparent)
  const span = await spanNamed('process given')
  assert.deepEqual(
    [span.spanContext().traceId, span.parentSpanContext?.spanId],
    ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'],
  )
  assert.ok(!exporter.getFinishedSpans().some(({ name }) => name === 'enqueue given'))
})

test('a job and its tasks carry the trace of whoever submitted it', async t => {
  startTracing()
  const { engine } = await fresh(t)
  const step = defineTask({ type: 'step-of-job', handler: () => undefined })
  await using _worker = startWorker(engine, [step])
  const stages = [{ name: 'only', task: 'step-of-job', payloads: [1] }]
  const { id, traceparent } = await engine.submit({ name: 'traced', stages })
  const submit = await spanNamed('submit traced')
  assert.deepEqual([traceparent, submit.attributes['pawl.job.id']], [traceparentOf(submit), id])
  assert.equal((await spanNamed('process step-of-job')).parentSpanContext?.spanId, submit.spanContext().spanId)
})

test('a call that is refused is an error of its span; one that is repeated with its key gets the first answer', async t => {
  startTracing()
  const { engine } = await fresh(t)
  await assert.rejects(engine.enqueue('twice', null, { runInSeconds: -1 }), { code: 'OPTION_INVALID' })
  const call = { idempotencyKey: 'k' }
  const [first, second] = [await engine.enqueue('twice', 1, call), await engine.enqueue('twice', 1, call)]
  assert.equal(first.id, second.id)
  await assert.rejects(engine.enqueue('twice', 2, call), { code: 'IDEMPOTENCY_MISMATCH' })
  const spans = exporter.getFinishedSpans().filter(({ name }) => name === 'enqueue twice')
  assert.deepEqual(
    spans.map(({ status }) => status.code),
    [SpanStatusCode.UNSET, SpanStatusCode.UNSET, SpanStatusCode.ERROR],
  )
})

test('what is not sampled where it is queued is not sampled where it is done', async t => {
  trace.disable()
  const sampler = new ParentBasedSampler({ root: new AlwaysOffSampler() })
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ sampler, spanProcessors: [new SimpleSpanProcessor(exporter)] }),
  )
  const { engine } = await fresh(t)
  const unseen = defineTask({ type: 'unseen', handler: () => undefined })
  await using _worker = startWorker(engine, [unseen])
  const { id } = await engine.enqueue(unseen, null)
  assert.match((await ended(engine, id)).traceparent!, /-00$/)
  assert.ok(!exporter.getFinishedSpans().some(({ name }) => name.endsWith('unseen')))
})
