/** Captures a trace of two tasks and draws it, for docs/monitoring.md. `npm run pictures` writes docs/trace.svg. */
import { setTimeout as sleep } from 'node:timers/promises'
import { context, type Span, SpanKind, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { pawl } from '../src/engine/engine.ts'
import { defineTask } from '../src/worker/define-task.ts'
import { startWorker } from '../src/worker/worker.ts'

/**
 * A request queues a task, whose handler queues another one. Registers a tracer for the whole process. Returns the
 * quickest of ten, because the first ones wait for the engine to be compiled.
 */
export async function captureTrace(): Promise<ReadableSpan[]> {
  const exporter = new InMemorySpanExporter()
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }))
  const shop = trace.getTracer('shop')
  const inSpan = <T>(name: string, kind: SpanKind, work: (span: Span) => Promise<T>) =>
    shop.startActiveSpan(name, { kind }, span => work(span).finally(() => span.end()))

  const engine = await pawl()
  const mail = defineTask({ type: 'mail', handler: () => sleep(20) })
  const charge = defineTask({
    type: 'charge',
    async handler(order: string) {
      await inSpan('POST api.bank.example', SpanKind.CLIENT, () => sleep(40))
      await engine.enqueue(mail, order)
    },
  })
  const worker = startWorker(engine, [charge, mail])
  const rounds: ReadableSpan[][] = []
  for (let round = 0; round < 10; round++) {
    exporter.reset()
    const { id } = await inSpan('POST /orders', SpanKind.SERVER, () => engine.enqueue(charge, 'o-1'))
    await engine.task(id, { waitSeconds: 60 })
    const [queued] = (await engine.tasks({ type: 'mail' })).items
    await engine.task(queued!.id, { waitSeconds: 60 })
    rounds.push([...exporter.getFinishedSpans()])
  }
  await worker.stop()
  await engine.close()
  trace.disable()
  return rounds.toSorted((one, other) => totalMs(treeOf(one)) - totalMs(treeOf(other)))[0]!
}

export interface DrawnSpan {
  readonly name: string
  readonly kind: string
  readonly depth: number
  readonly startMs: number
  readonly ms: number
}

/** The spans as a tree, parents before children, in the order of their starts. */
export function treeOf(spans: readonly ReadableSpan[]): DrawnSpan[] {
  const ms = ([seconds, nanos]: readonly [number, number]) => seconds * 1000 + nanos / 1e6
  const begin = Math.min(...spans.map(span => ms(span.startTime)))
  const below = (parent: string | undefined, depth: number): DrawnSpan[] =>
    spans
      .filter(span => span.parentSpanContext?.spanId === parent)
      .toSorted((one, other) => ms(one.startTime) - ms(other.startTime))
      .flatMap(span => [
        {
          name: span.name,
          kind: SpanKind[span.kind].toLowerCase(),
          depth,
          startMs: ms(span.startTime) - begin,
          ms: ms(span.duration),
        },
        ...below(span.spanContext().spanId, depth + 1),
      ])
  return below(undefined, 0)
}

const totalMs = (spans: readonly DrawnSpan[]) => Math.max(...spans.map(({ startMs, ms }) => startMs + ms))

const colours: Readonly<Record<string, string>> = {
  server: '#7c5cbf',
  producer: '#2f81c7',
  consumer: '#2e8b57',
  client: '#b0772a',
}

export function drawTrace(spans: readonly DrawnSpan[]): string {
  const [left, width, height] = [260, 520, 26]
  const total = totalMs(spans)
  const rows = spans.map(({ name, kind, depth, startMs, ms }, index) => {
    const y = 34 + index * height
    const x = left + (startMs / total) * width
    const bar = Math.max(2, (ms / total) * width)
    const isLate = x + bar > left + width - 60
    const at = isLate ? `x="${(x - 6).toFixed(1)}" text-anchor="end"` : `x="${(x + bar + 6).toFixed(1)}"`
    return `  <g data-span="${name}" data-kind="${kind}" data-depth="${depth}">
    <text x="${10 + depth * 16}" y="${y + 15}">${name}</text>
    <rect x="${x.toFixed(1)}" y="${y + 3}" width="${bar.toFixed(1)}" height="16" rx="2" fill="${colours[kind] ?? '#888'}"/>
    <text ${at} y="${y + 15}" class="time">${ms.toFixed(1)} ms</text>
  </g>`
  })
  const end = 34 + spans.length * height
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 ${end + 10}" role="img" aria-label="A trace of two tasks">
  <style>text { font: 13px system-ui, sans-serif; fill: #222 } .time { font-size: 11px; fill: #555 } .head { fill: #555 }</style>
  <rect width="860" height="${end + 10}" fill="#fff"/>
  <text x="10" y="20" class="head">span</text>
  <text x="${left}" y="20" class="head">0 ms</text>
  <text x="${left + width}" y="20" class="head" text-anchor="end">${total.toFixed(0)} ms</text>
${rows.join('\n')}
</svg>
`
}
