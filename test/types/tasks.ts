// Compiled with the tests and never run. Each line under `@ts-expect-error` must not compile.
import * as v from 'valibot'
import { z } from 'zod'
import { defineTask, type Pawl, type PawlClient, type Task } from '../../src/index.ts'

declare const client: PawlClient

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const isTrue = <_ extends true>() => {}

const resize = defineTask({
  type: 'resize',
  payload: z.object({ file: z.string(), width: z.number().default(100) }),
  handler: ({ file, width }) => {
    isTrue<Equal<typeof width, number>>()
    return { file, width, at: new Date() }
  },
})
// The queued payload is the input of the schema, and the result is what JSON leaves of the output.
isTrue<
  Equal<typeof resize, Task<{ file: string; width?: number | undefined }, { file: string; width: number; at: string }>>
>()

const shout = defineTask({ type: 'shout', handler: async (text: string) => text.toUpperCase() })
isTrue<Equal<typeof shout, Task<string, string>>>()

const quiet = defineTask({ type: 'quiet', payload: v.object({ to: v.string() }), handler: async () => {} })
isTrue<Equal<typeof quiet, Task<{ to: string }, null>>>()

const lossy = defineTask({
  type: 'lossy',
  handler: async (): Promise<{ url: string | undefined; n: number; any: unknown; size?: number }> => ({
    url: undefined,
    n: 1,
    any: 1,
  }),
})
// JSON has no key for undefined.
isTrue<Equal<typeof lossy, Task<unknown, { n: number; any: unknown; url?: string; size?: number }>>>()

const untyped = defineTask({ type: 'untyped', handler: payload => payload })
isTrue<Equal<typeof untyped, Task<unknown, unknown>>>()

/** The engine and the client take the same calls. */
export async function calls(api: Pick<Pawl, 'enqueue' | 'submit'>): Promise<void> {
  const { width, at } = await (await api.enqueue(resize, { file: 'a.png' })).result()
  isTrue<Equal<typeof width, number>>()
  isTrue<Equal<typeof at, string>>()
  const text = await (await api.enqueue(shout, 'hello')).result({ timeoutSeconds: 5 })
  isTrue<Equal<typeof text, string>>()
  const anything = await (await api.enqueue('by-name', { any: 'payload' })).result()
  isTrue<Equal<typeof anything, unknown>>()
  const job = await (await api.submit({ name: 'month' })).result()
  isTrue<Equal<typeof job.name, string>>()

  // @ts-expect-error: the payload lacks its file
  await api.enqueue(resize, { width: 5 })
  // @ts-expect-error: the width is no text
  await api.enqueue(resize, { file: 'a.png', width: 'wide' })
  // @ts-expect-error: the payload is a text
  await api.enqueue(shout, 5)
  // @ts-expect-error: no such option
  await api.enqueue(shout, 'hello', { runInSecond: 5 })
  // @ts-expect-error: no such option of a result
  await (await api.enqueue(shout, 'hello')).result({ timeout: 5 })
}
export const callsOverHttp = () => calls(client)

// @ts-expect-error: the handler expects another payload than the schema gives
defineTask({ type: 'wrong', payload: z.object({ n: z.number() }), handler: (payload: { n: string }) => payload.n })
