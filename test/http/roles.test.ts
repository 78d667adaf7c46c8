/** Every route with every role, as the tables define it. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { connect } from '../../src/client/client.ts'
import { may, type Role, roles } from '../../src/kernel/role.ts'
import type { OperationEntry } from '../../src/protocol/operation.ts'
import { namedOperations } from '../../src/protocol/operations.ts'
import { type Served, served } from '../harness/served.ts'

const everyRole = Object.keys(roles) as Role[]
const theirs = {
  admin: 'an admin',
  operator: 'an operator',
  producer: 'a producer',
  worker: 'a worker',
  viewer: 'a viewer',
}

for (const role of everyRole) {
  test(`a key of ${theirs[role]} opens what its role may do and nothing else`, async t => {
    const run = await behindKeys(t)
    const { secret } = await run.engine.createKey({ name: 'ada', role })
    for (const [operation, route] of namedOperations) {
      const word = may(role, route.permission) ? 'may' : 'may not'
      await t.test(`${theirs[role]} ${word} ${operation} (${route.method} ${route.path})`, async () => {
        const { status, problem } = await call(run, route, { authorization: `Bearer ${secret}` })
        if (may(role, route.permission)) return assert.ok(status !== 401 && status !== 403, `${status}`)
        assert.deepEqual([status, problem.code], [403, 'KEY_REFUSED'])
        const { details } = problem as { details: { lacks: string; role: string; able: Role[] } }
        assert.deepEqual([details.lacks, details.role], [route.permission, role])
        assert.ok(details.able.every(able => may(able, route.permission)))
      })
    }
  })
}

test('without a key, with a wrong one and with one that was revoked, no route answers', async t => {
  const run = await behindKeys(t)
  const revoked = await run.engine.createKey({ name: 'bea', role: 'admin' })
  await run.engine.revokeKey(revoked.id)
  const strangers: Record<string, string>[] = [
    {},
    { authorization: `Bearer ${revoked.secret}` },
    { authorization: 'Bearer pawl_guess' },
    { authorization: 'Basic YTpi' },
    { authorization: 'Bearer' },
  ]
  for (const [operation, route] of namedOperations) {
    for (const headers of strangers) {
      const { status, problem, response } = await call(run, route, headers)
      assert.deepEqual([status, problem.code], [401, 'KEY_MISSING'], operation)
      assert.equal(response.headers.get('www-authenticate'), 'Bearer')
    }
  }
})

test('whoever has a key hears whose it is and what it may do; whoever has none hears nothing', async t => {
  const run = await behindKeys(t)
  for (const role of everyRole) {
    const queues = role === 'worker' ? ['letters'] : undefined
    const { secret } = await run.engine.createKey({ name: `the ${role}`, role, ...(queues && { queues }) })
    const response = await run.request('/v1/me', { headers: { authorization: `Bearer ${secret}` } })
    const me = { name: `the ${role}`, role, roles: [role], permissions: roles[role], queues: queues ?? null }
    assert.deepEqual(await response.json(), me)
  }
  assert.equal((await run.request('/v1/me')).status, 401)
})

test('a key with several roles may do what one of them allows, and nothing else', async t => {
  const run = await behindKeys(t)
  const held: Role[] = ['producer', 'worker']
  const { secret, ...key } = await run.engine.createKey({ name: 'pods', roles: held, queues: ['mine'] })
  assert.deepEqual([key.role, key.roles], ['producer', held])
  const authorization = `Bearer ${secret}`
  for (const [operation, route] of namedOperations) {
    const { status, problem } = await call(run, route, { authorization })
    if (may(held, route.permission)) assert.notEqual(status, 401, operation)
    else assert.deepEqual([status, problem.code], [403, 'KEY_REFUSED'], operation)
  }
  const me = await (await run.request('/v1/me', { headers: { authorization } })).json()
  const permissions = ['read', 'produce', 'work', 'teach']
  assert.deepEqual(me, { name: 'pods', role: 'producer', roles: held, permissions, queues: ['mine'] })
})

test('a key is created with a role or with roles, and one that may operate is for all queues', async t => {
  const { engine } = await behindKeys(t)
  const bad = [{}, { role: 'worker', roles: ['viewer'] }, { roles: [] }, { roles: ['boss'] }]
  for (const more of bad)
    await assert.rejects(engine.createKey({ name: 'k', ...(more as object) }), { code: 'OPTION_INVALID' })
  const narrow = engine.createKey({ name: 'k', roles: ['worker', 'operator'], queues: ['mine'] })
  await assert.rejects(narrow, { code: 'OPTION_INVALID' })
  assert.deepEqual((await engine.createKey({ name: 'k', roles: ['worker', 'worker'] })).roles, ['worker'])
})

test('a key that is revoked is refused from then on', async t => {
  const run = await behindKeys(t)
  const { id, secret } = await run.engine.createKey({ name: 'cid', role: 'viewer' })
  const headers = { authorization: `Bearer ${secret}` }
  assert.equal((await run.request('/v1/jobs', { headers })).status, 200)
  await run.engine.revokeKey(id)
  assert.equal((await run.request('/v1/jobs', { headers })).status, 401)
})

test('who made a key and who revoked it first is kept, and seen by whoever lists keys', async t => {
  const run = await behindKeys(t)
  const { secret } = await run.engine.createKey({ name: 'ann', role: 'admin' }, { actor: 'bootstrap' })
  const ann = connect({ server: run.server.url, key: secret, patienceSeconds: 0 })
  const made = await ann.createKey({ name: 'w', role: 'worker' })
  assert.deepEqual([made.createdBy, made.revokedBy], ['ann', null])
  await ann.revokeKey(made.id, { actor: 'laptop' })
  // A second revocation keeps the first actor.
  await run.engine.revokeKey(made.id, { actor: 'too late' })
  const kept = (await ann.keys()).map(({ name, createdBy, revokedBy }) => [name, createdBy, revokedBy])
  assert.deepEqual(kept, [
    ['first', 'operator', null],
    ['ann', 'bootstrap', null],
    ['w', 'ann', 'ann/laptop'],
  ])
})

test('what anyone may know needs no key, and the rest of the world is told only that there is nothing', async t => {
  const run = await behindKeys(t)
  for (const path of ['/openapi.json', '/docs', '/docs/api', '/docs/jobs', '/docs/jobs.md', '/healthz', '/readyz']) {
    assert.equal((await run.request(path)).status, 200, path)
  }
  assert.equal((await run.request('/v1/secrets')).status, 404)
})

async function behindKeys(t: Parameters<typeof served>[0]): Promise<Served> {
  // The server does not start without one.
  return served(t, { server: { keysOnly: true }, before: engine => engine.createKey({ name: 'first', role: 'admin' }) })
}

async function call({ request }: Served, { method, path }: OperationEntry, headers: Record<string, string>) {
  const response = await request(path.replace(/\{\w+\}/g, randomUUID()), {
    method,
    headers,
    ...(method !== 'GET' && { json: {} }),
  })
  const text = await response.text()
  const problem = response.ok || text === '' ? {} : JSON.parse(text)
  return { status: response.status, response, problem: problem as { code?: string; details?: unknown } }
}
