/** Waits for a person between two stages of a job. */
import { defineTask, pawl, startWorker } from 'pawl'

const draft = defineTask({ type: 'draft', handler: (topic: string) => `A post about ${topic}` })
const publish = defineTask({ type: 'publish', handler: (topic: string) => console.log('published:', topic) })

const engine = await pawl()
const worker = startWorker(engine, [draft, publish])

const job = await engine.submit({
  name: 'post',
  stages: [
    { name: 'draft', task: draft.type, payload: 'owls' },
    { name: 'review', gate: { ask: 'Is the post ready?' } },
    { name: 'publish', task: publish.type, payload: 'owls' },
  ],
})

// `pawl stage approve` and the dashboard do the same. A program, such as a chat bot, follows the events.
for await (const { items } of engine.follow({ jobId: job.id }, { signal: AbortSignal.timeout(60_000) })) {
  const gate = items.find(({ entity, to }) => entity === 'stage' && to === 'waiting')
  if (gate === undefined) continue
  await engine.approve(gate.entityId, { actor: 'ada', comment: 'Well written.' })
  break
}

const { state } = await job.result()
console.log('The job', state)

await worker.stop()
await engine.close()
