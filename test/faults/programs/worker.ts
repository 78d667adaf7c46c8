/**
 * A worker in a process of its own, to be stopped, continued and killed. It says on its output, a line of JSON each,
 * what its handlers do and what the engine answers. Its tasks say in their payload what is to be done:
 *
 *   return  nothing to do
 *   hang    never ends, and heeds no signal
 *   die     ends the whole process, as running out of memory would
 *   linger  goes on until it hears that its lease is lost, and then reports as if nothing had happened
 */
import { once } from 'node:events'
import { openEngine } from '../../../src/engine/engine.ts'
import type { SyncPort, SyncRequest } from '../../../src/protocol/tasks/sync.ts'
import { defineTask, startWorker, type TaskContext } from '../../../src/worker/index.ts'

export interface WorkerProgram {
  readonly database: string
  readonly schema: string
  readonly concurrency: number
  readonly buffer: number
}

const { database, schema, concurrency, buffer }: WorkerProgram = JSON.parse(process.argv[2]!)
const say = (word: string, facts: object) => process.stdout.write(`${JSON.stringify({ word, ...facts })}\n`)

const deeds: Record<string, (ctx: TaskContext) => unknown> = {
  return: () => 'done',
  hang: () => new Promise(() => {}),
  die: () => process.kill(process.pid, 'SIGKILL'),
  async linger(ctx) {
    await once(ctx.signal, 'abort')
    ctx.progress('a word from the dead')
    await ctx.checkpoint('from the dead').catch(error => say('checkpoint', { code: error.code }))
    return 'the work of a zombie'
  },
}

const work = defineTask({
  type: 'work',
  leaseSeconds: 5,
  heartbeatSeconds: 1,
  retry: { delaySeconds: 0 },
  handler: (payload: unknown, ctx: TaskContext) => {
    say('began', { id: ctx.id, epoch: ctx.epoch })
    return deeds[String(payload)]!(ctx)
  },
})

const engine = await openEngine({ database, schema, migrate: false, connections: 2 })
const port: SyncPort = {
  putTaskType: (type, settings) => engine.putTaskType(type, settings),
  async sync(request, signal) {
    const answer = await engine.sync(request, signal)
    const parts = (['started', 'beats', 'settled'] as const).filter(part => tells(request, part))
    if (parts.length > 0) say('answered', { parts, refused: answer.refused.map(({ code }) => code) })
    return answer
  },
}
startWorker(port, [work], { name: `process ${process.pid}`, concurrency, buffer, waitSeconds: 1 })

function tells(request: SyncRequest, part: 'started' | 'beats' | 'settled'): boolean {
  return (request[part]?.length ?? 0) > 0
}
