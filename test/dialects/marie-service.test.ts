/** The routes of Marie's gateway for operators: its health, its work and its executors. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { marieRig } from '../harness/marie-rig.ts'

test('marie: its clients find the gateway ready without a key', async t => {
  const rig = await marieRig(t, {
    server: { keysOnly: true },
    before: engine => engine.createKey({ name: 'root', role: 'admin' }),
  })
  const get = async (path: string) => {
    const response = await fetch(`${rig.server.url}/dialects/marie${path}`)
    return [response.status, await response.json()]
  }
  assert.deepEqual(await get('/check?text=ping'), [200, { result: 'ok' }])
  assert.deepEqual(await get('/'), [200, {}])
  assert.deepEqual(await get('/dry_run'), [200, { code: 0, description: '', exception: null }])
  const [status, { marie }] = (await get('/status')) as [number, { marie: { version: string } }]
  assert.deepEqual([status, typeof marie.version], [200, 'string'])
})

test('marie: probes find it where it is served at the root', async t => {
  const { server } = await marieRig(t, { server: { rootDialect: 'marie' } })
  for (const path of ['/', '/check', '/status', '/dry_run']) {
    assert.equal((await fetch(new URL(path, server.url))).status, 200, path)
  }
})

test('marie: /api/debug counts jobs by queue and state, and DAGs by state', async t => {
  const rig = await marieRig(t)
  await rig.submit({ name: 'ocr', data: {} })
  await rig.submit({ name: 'extract', data: {} })
  await rig.submit({ name: 'extract', data: {}, dag_id: 'd1' })
  await rig.work('ocr')
  const { http, status, result } = await rig.marie.ask<Debug>('GET', '/api/debug')
  assert.deepEqual([http, status], [200, 'OK'])
  assert.deepEqual(result.job_state_counts, {
    queues: { extract: { CREATED: 2 }, ocr: { COMPLETED: 1 } },
  })
  assert.deepEqual(result.dag_state_counts, { CREATED: 1 })
  assert.deepEqual(result.scheduler_info.known_queues, ['extract', 'ocr'])
  assert.deepEqual([result.scheduler_info.running, result.scheduler_info.active_dags_count], [true, 1])
})

interface Debug {
  readonly job_state_counts: unknown
  readonly dag_state_counts: unknown
  readonly scheduler_info: {
    readonly running: boolean
    readonly known_queues: readonly string[]
    readonly active_dags_count: number
  }
}

test('marie: /api/deployments names the executors that are connected, and what each serves', async t => {
  const rig = await marieRig(t)
  const none = await rig.marie.ask('GET', '/api/deployments')
  assert.deepEqual([none.http, none.result], [200, { deployments: {}, deployment_nodes: {} }])
  const session = '0198c0de-0000-4000-8000-0000000000aa'
  await rig.client.sync({ worker: 'gpu-1', session, queues: ['ocr', 'extract'], slots: 4, claim: 1 })
  const { result } = await rig.marie.ask<{
    deployments: Record<string, { slots: number }[]>
    deployment_nodes: object
  }>('GET', '/api/deployments')
  assert.deepEqual(
    result.deployments['gpu-1']!.map(({ slots }) => slots),
    [4],
  )
  const nodes = {
    'gpu-1': ['extract', 'ocr'].map(endpoint => ({
      address: session,
      endpoint,
      executor: 'gpu-1',
      gateway: '/dialects/marie',
    })),
  }
  assert.deepEqual(result.deployment_nodes, nodes)
  assert.deepEqual((await rig.marie.ask('GET', '/api/deployment-nodes')).result, nodes)
})

test('marie: /api/debug names 100 queues and sums up the others', async t => {
  const rig = await marieRig(t)
  const names = Array.from({ length: 120 }, (_, n) => `q${n}`)
  await rig.engine.enqueueMany(names.map((queue, priority) => ({ type: 't', queue, priority })))
  const { result } = await rig.marie.ask<Debug>('GET', '/api/debug')
  const { queues } = result.job_state_counts as { queues: Record<string, unknown> }
  assert.deepEqual([Object.keys(queues).length, queues._other], [101, { CREATED: 20 }])
  assert.equal(result.scheduler_info.known_queues.length, 100)
})

test('marie: /api/deployments shows 10,000 endpoints at most', async t => {
  const rig = await marieRig(t)
  const queues = Array.from({ length: 1000 }, (_, n) => `q${n}`)
  for (let n = 10; n < 21; n++) {
    await rig.client.sync({ worker: `w${n}`, session: crypto.randomUUID(), queues, slots: 1, claim: 1 })
  }
  const { result } = await rig.marie.ask<Record<string, unknown[]>>('GET', '/api/deployment-nodes')
  const counts = Object.values(result).map(nodes => nodes.length)
  assert.deepEqual([counts.length, counts.reduce((sum, count) => sum + count, 0), result.w20], [11, 10_000, []])
})

test('marie: a queue may have any name in /api/debug', async t => {
  const rig = await marieRig(t)
  await rig.engine.enqueue('extract', {}, { queue: '__proto__' })
  const text = await (await rig.request('/dialects/marie/api/debug')).text()
  assert.ok(text.includes('"queues":{"__proto__":{"CREATED":1}}'), text)
  assert.equal(({} as Record<string, unknown>).CREATED, undefined)
})

test('marie: what the scheduler does is shown only to a key that may read', async t => {
  const rig = await marieRig(t, {
    server: { keysOnly: true },
    before: engine => engine.createKey({ name: 'root', role: 'admin' }),
  })
  for (const path of ['/api/debug', '/api/deployments', '/api/deployment-nodes']) {
    assert.equal((await rig.marie.ask('GET', path)).code, 'UNAUTHORIZED', path)
  }
})
