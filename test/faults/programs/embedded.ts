/**
 * An application on the embedded store: it queues and works at the same time, until it is killed. It says on its output
 * what has been promised to it, a line each and only when it has been: open, queued, began, ended, settled.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { startBabysitter } from '../../../src/babysitter/babysitter.ts'
import { rescue } from '../../../src/babysitter/rescue.ts'
import { openEngine } from '../../../src/engine/engine.ts'
import type { SyncPort } from '../../../src/protocol/tasks/sync.ts'
import { defineTask, startWorker, type TaskContext } from '../../../src/worker/index.ts'

export interface EmbeddedProgram {
  readonly folder: string
}

const { folder }: EmbeddedProgram = JSON.parse(process.argv[2]!)
// A write to a pipe is done when it returns, so what was said is heard even if this process dies in the next moment.
const say = (...words: (string | number)[]) => process.stdout.write(`${words.join(' ')}\n`)

const engine = await openEngine({ folder })
say('open')
const port: SyncPort = {
  putTaskType: (type, settings) => engine.putTaskType(type, settings),
  async sync(request, signal) {
    const answer = await engine.sync(request, signal)
    const refused = new Set(answer.refused.map(({ id }) => id))
    // What it gave back, because its lease ran out on a busy machine, was not done.
    const done = (request.settled ?? []).filter(({ id, outcome }) => outcome === 'succeeded' && !refused.has(id))
    for (const { id, epoch } of done) say('settled', id, epoch)
    return answer
  },
}
const work = defineTask({
  type: 'work',
  leaseSeconds: 5,
  heartbeatSeconds: 1,
  retry: { losses: 1000 },
  handler: async (_: unknown, { id, epoch }: TaskContext) => {
    say('began', id, epoch)
    await new Promise(setImmediate)
    say('ended', id, epoch)
  },
})
startBabysitter(engine, [rescue({ beginsBlind: false })])
startWorker(port, [work], { concurrency: 4, buffer: 8 })
for (let n = 0; ; n++) {
  const queued = await engine.enqueueMany(Array.from({ length: 1 + (n % 4) }, () => ({ type: 'work', payload: n })))
  for (const { id } of queued) say('queued', id, 0)
  await sleep(5)
}
