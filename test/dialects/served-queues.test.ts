/** Queues served by a dialect's workers, which claim over its routes and have no sessions like Pawl's workers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { watchQueues } from '../../src/babysitter/chores.ts'
import { type Served, served } from '../harness/served.ts'
import { jsmClient } from './jsm-client.ts'

/** The warnings of the log and the doctor, and so the dashboard, about queues without workers. */
async function complaints({ engine }: Served): Promise<unknown[]> {
  const logged: unknown[] = []
  const log = (word: string) => void logged.push(word)
  await watchQueues.run({ ...engine.context, log })
  const { findings } = await engine.doctor()
  return [...logged, ...findings.flatMap(({ what }) => (what.includes('no worker') ? [what] : []))]
}

test('a queue is not reported as unserved while a jsm worker holds one of its jobs', async t => {
  const rig = await served(t)
  const jsm = jsmClient(() => rig.server.url)
  await jsm.enqueue({ type: 'mail' })
  await jsm.enqueue({ type: 'mail' })
  const job = await jsm.claim({ worker: 'w', types: ['mail'] })
  for (let n = 0; n < 4; n++) {
    await rig.advance(25)
    await jsm.say(job!.id, 'heartbeat', { worker: 'w' })
  }
  assert.deepEqual(await complaints(rig), [])
  await rig.advance(61)
  assert.equal((await complaints(rig)).length, 2, 'it has fallen silent')
})

test('a queue is not reported as unserved while a jobnik worker holds one of its tasks', async t => {
  const rig = await served(t)
  const ask = async (method: string, path: string, body?: unknown) => {
    const json =
      body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
    const response = await rig.request(`/dialects/jobnik/v1${path}`, { method, ...json })
    return (await response.json()) as { id: string }
  }
  const { id } = await ask('POST', '/jobs', { name: 'tiles', data: {} })
  const stage = await ask('POST', `/jobs/${id}/stage`, { type: 'cut', data: {}, userMetadata: {} })
  await ask('POST', `/stages/${stage.id}/tasks`, [{ data: {} }, { data: {} }])
  await ask('PATCH', '/stages/cut/tasks/dequeue')
  await rig.advance(600)
  assert.deepEqual(await complaints(rig), [])
})
