// Compiled with the tests and never run. Each line under `@ts-expect-error` must not compile.
import { z } from 'zod'
import { connect, defineTask, type Pawl, type PawlClient, pawl, startBabysitter, startWorker } from '../../src/index.ts'
import { startServer } from '../../src/server/index.ts'

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const isTrue = <_ extends true>() => {}

const resize = defineTask({
  type: 'resize',
  payload: z.object({ file: z.string(), width: z.number().default(100) }),
  handler: ({ file, width }) => ({ file, width }),
})
const sendInvoice = defineTask({ type: 'send-invoice', handler: async (order: string) => order.length })
const untyped = defineTask({ type: 'untyped', handler: () => {} })
const tasks = { resize, sendInvoice, untyped }
type App = Pawl<typeof tasks>

/** The engine and the client take the same calls. */
export async function calls(app: Pick<App, 'enqueue' | 'enqueueMany'>): Promise<void> {
  const { width } = await (await app.enqueue('resize', { file: 'a.png' })).result()
  isTrue<Equal<typeof width, number>>()
  const length = await (await app.enqueue('sendInvoice', 'o-1', { priority: 5 })).result()
  isTrue<Equal<typeof length, number>>()
  const file = (await (await app.enqueue(resize, { file: 'a.png' })).result()).file
  isTrue<Equal<typeof file, string>>()
  await app.enqueue('untyped', { any: 'payload' })
  await app.enqueueMany([
    { type: 'resize', payload: { file: 'a.png' }, priority: 5 },
    { type: 'sendInvoice', payload: 'o-1', runInSeconds: 60 },
    { type: 'untyped' },
  ])
  const names = ['a.png', 'b.png']
  await app.enqueueMany(names.map(file => ({ type: 'resize', payload: { file } })))

  // @ts-expect-error: no task of this name
  await app.enqueue('resise', { file: 'a.png' })
  // @ts-expect-error: the name is not the type of the task
  await app.enqueue('send-invoice', 'o-1')
  // @ts-expect-error: the payload lacks its file
  await app.enqueue('resize', { width: 5 })
  // @ts-expect-error: the payload of another task
  await app.enqueue('sendInvoice', { file: 'a.png' })
  // @ts-expect-error: no such option
  await app.enqueue('resize', { file: 'a.png' }, { runInSecond: 5 })
  // @ts-expect-error: the payload of another task
  await app.enqueue(resize, 'o-1')
  // @ts-expect-error: no task of this name
  await app.enqueueMany([{ type: 'resise', payload: { file: 'a.png' } }])
  // @ts-expect-error: the payload of another task
  await app.enqueueMany([{ type: 'sendInvoice', payload: { file: 'a.png' } }])
  // @ts-expect-error: the payload is missing
  await app.enqueueMany([{ type: 'resize' }])
  // @ts-expect-error: the payload of another task
  await app.enqueueMany(names.map(file => ({ type: 'sendInvoice' as const, payload: { file } })))
}

export async function opened(): Promise<void> {
  const app = await pawl({ tasks })
  isTrue<Equal<typeof app, App>>()
  await calls(app)
  const client = connect({ tasks })
  isTrue<Equal<typeof client, PawlClient<typeof tasks>>>()
  await calls(client)
  startWorker(app, Object.values(tasks))
  startWorker(client, [resize])
  startBabysitter(app)
  await startServer(app)
  // Without tasks, any name is accepted, with any payload.
  const open = await pawl()
  isTrue<Equal<typeof open, Pawl>>()
  const output = await (await open.enqueue('by-name', { any: 'payload' })).result()
  isTrue<Equal<typeof output, unknown>>()
  await open.enqueueMany([{ type: 'by-name', payload: 1 }])
  // @ts-expect-error: a task is what defineTask returns
  await pawl({ tasks: { resize: () => {} } })
}

export const spawning = defineTask({
  type: 'spawning',
  handler: (_, ctx) => {
    ctx.spawn(resize, { file: 'a.png' })
    ctx.spawn(resize, { file: 'a.png' }, { stage: 'later' })
    ctx.spawn({ payload: 1 }, { type: 'resize', payload: 2 })
    // @ts-expect-error: the payload lacks its file
    ctx.spawn(resize, { width: 5 })
    // @ts-expect-error: the payload of another task
    ctx.spawn(sendInvoice, { file: 'a.png' })
    // @ts-expect-error: no such option
    ctx.spawn(resize, { file: 'a.png' }, { stages: 'later' })
  },
})
