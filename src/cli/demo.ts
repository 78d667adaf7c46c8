/** The demonstration: a few tasks on a real store, and everything that was written down about them. */
import { startBabysitter } from '../babysitter/babysitter.ts'
import { type Pawl, pawl } from '../engine/engine.ts'
import type { EventView, QueuedTask } from '../protocol/tasks.ts'
import { DeadLetter, defineTask, startWorker } from '../worker/index.ts'
import type { StoreFlags } from './main.ts'

interface Order {
  readonly order: string
  readonly trouble?: 'once' | 'unreadable'
}

const sendInvoice = defineTask({
  type: 'send-invoice',
  retry: { attempts: 3, delaySeconds: 0.2 },
  async handler(payload, ctx) {
    const { order, trouble } = payload as Order
    if (trouble === 'unreadable') throw new DeadLetter('parse_error', `Order ${order} cannot be read.`, 'input')
    if (trouble === 'once' && ctx.attempt === 1) throw new Error('The mail server did not answer.')
    return { sent: `invoice-${order}.pdf`, attempt: ctx.attempt }
  },
})

export async function runDemo({ json: _, ...store }: StoreFlags & { json: boolean }): Promise<number> {
  const say = (line: string) => void process.stdout.write(`${line}\n`)
  say(`Opening ${store.database ? 'the PostgreSQL server' : 'the embedded store'} …`)
  await using engine = await pawl(store)
  await using _babysitter = startBabysitter(engine)
  const orders: Order[] = [
    { order: '1001' },
    { order: '1002', trouble: 'once' },
    { order: '1003', trouble: 'unreadable' },
  ]
  const queued = await engine.enqueueMany(orders.map(payload => ({ type: 'send-invoice', payload })))
  say(`Queued ${queued.length} tasks. A worker takes them up:\n`)
  await using _worker = startWorker(engine, [sendInvoice], { name: 'demo', concurrency: 2 })
  await untilEnded(engine, queued)
  for (const [index, { id }] of queued.entries()) await show(engine, id, orders[index]!, say)
  const { healthy, findings } = await engine.doctor()
  say(healthy ? 'Doctor: every rule holds.' : `Doctor: ${JSON.stringify(findings)}`)
  say('\nNext: README.md has a task in ten lines; `npx pawl doctor --help` lists the commands.')
  return healthy ? 0 : 1
}

async function untilEnded(engine: Pawl, queued: readonly QueuedTask[]): Promise<void> {
  const open = new Set(queued.map(({ id }) => id))
  for (let cursor: string | undefined; open.size > 0; ) {
    const { items, next } = await engine.events(cursor === undefined ? {} : { cursor })
    cursor = next
    for (const { entityId, to } of items) if (/succeeded|dead_lettered|failed/.test(to)) open.delete(entityId)
    if (items.length === 0) await new Promise(resolve => setTimeout(resolve, 50))
  }
}

async function show(engine: Pawl, id: string, { order }: Order, say: (line: string) => void): Promise<void> {
  const task = await engine.task(id)
  const { items } = await engine.taskEvents(id)
  say(`order ${order}: ${task.state}${task.output ? ` ${JSON.stringify(task.output)}` : ''}`)
  for (const event of items) say(`  ${describe(event)}`)
  if (task.deadLetter)
    say(`  evidence: ${task.deadLetter.reasonCode} in step ${task.deadLetter.step}: ${task.error?.message}`)
  say('')
}

function describe({ seq, ts, type, actor, cause, epoch, payload }: EventView): string {
  const error = (payload.error as { message?: string } | undefined)?.message
  const lease = epoch > 0 ? ` lease ${epoch}` : ''
  return `${seq}. ${ts.slice(11, 23)} ${type.padEnd(18)} by ${actor}${lease}, ${cause}${error ? `: ${error}` : ''}`
}
