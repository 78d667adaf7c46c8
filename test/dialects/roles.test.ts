/** Every route of every dialect, with keys of every role, for all queues and for some: no key can do more than it may. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { rescue } from '../../src/babysitter/rescue.ts'
import { dialects } from '../../src/dialects/all.ts'
import type { Dialect } from '../../src/dialects/dialect.ts'
import { may, type Role, roles } from '../../src/kernel/role.ts'
import { type DialectName, dialectNames } from '../../src/protocol/dialects.ts'
import { type FalconeriRig, falconeriRig } from '../harness/falconeri.ts'
import { claimNeeds, recipes, theirQueues } from './every-route.ts'
import { type Asked, type Recipe, type Send, type World, well } from './route-recipe.ts'

interface Key {
  readonly roles: readonly Role[]
  readonly queues: readonly string[] | null
  readonly send: Send
}

const both: readonly Role[] = ['producer', 'worker']
const single = (Object.keys(roles) as Role[]).map(role => [role])
const kinds: readonly Pick<Key, 'roles' | 'queues'>[] = [
  ...[...single, both].map(held => ({ roles: held, queues: null })),
  ...[['producer'] as const, ['worker'] as const, both].flatMap(held => [
    { roles: held, queues: ['mine'] },
    { roles: held, queues: theirQueues },
  ]),
]

test('every route of a dialect says in the table of this test what a key must allow', () => {
  for (const name of dialectNames) {
    const served = dialects[name].routes.map(({ method, path }) => `${method} ${path}`)
    assert.deepEqual([...served].sort(), Object.keys(recipes[name]).sort(), name)
  }
})

for (const name of dialectNames) {
  test(`no key reaches further through ${name} than its roles and queues allow`, async t => {
    const run = await walkable(t)
    const keys = await Promise.all(kinds.map(kind => keyOf(run, kind)))
    const other = await keyOf(run, { roles: ['admin'], queues: null })
    const world: World = { engine: run.engine, spec: run.spec, admin: other.send }
    const faults: string[] = []
    for (const [route, ways] of Object.entries(recipes[name])) {
      for (const [n, recipe] of ways.entries()) {
        const ask = async (key: Key, claimer: Key, asked: Asked) => {
          const { status, text } = await key.send(name, route.split(' ')[0]!, pathOf(route, asked), asked.body)
          const isRight = allows(key, recipe, claimer === key) ? status >= 200 && status < 300 : status === 403
          const by = recipe.held === true ? `, claimed by ${claimer === key ? 'itself' : 'another key'}` : ''
          const title = `${keyTitle(key)}: ${route}${n > 0 ? ` (${n + 1})` : ''}${by}`
          if (!isRight) faults.push(`${title}: ${status} ${text.slice(0, 200)}`)
        }
        const isRefused = (key: Key) => !allows(key, recipe, false)
        // Refused requests change nothing, so all of these can use the same entities.
        const same = await recipe.prepare(world, other.send)
        for (const key of keys.filter(isRefused)) await ask(key, other, same)
        for (const key of keys) {
          if (!isRefused(key)) await ask(key, other, await recipe.prepare(world, other.send))
          if (recipe.held === true && mayClaim(key, name)) await ask(key, key, await recipe.prepare(world, key.send))
        }
      }
    }
    assert.deepEqual(faults, [])
  })
}

test('a worker that lost its job to another key is told so, and its report changes nothing', async t => {
  const run = await walkable(t)
  const [first, second] = [
    await keyOf(run, { roles: ['worker'], queues: null }),
    await keyOf(run, { roles: ['worker'], queues: null }),
  ]
  const { id } = await run.engine.enqueue('theirs', 1)
  const claim = { worker: 'w', types: ['theirs'] }
  await well(first.send, 'jsm', 'POST', '/jobs/claim', claim)
  await run.advance(600)
  await rescue({ beginsBlind: false }).run(run.engine.context)
  await run.advance(600)
  await well(second.send, 'jsm', 'POST', '/jobs/claim', claim)
  await well(second.send, 'jsm', 'POST', `/jobs/${id}/start`, { worker: 'w' })
  const late = await first.send('jsm', 'POST', `/jobs/${id}/succeed`, { worker: 'w' })
  assert.deepEqual([late.status, JSON.parse(late.text).code], [409, 'LEASE_LOST'])
  assert.equal((await run.engine.task(id)).state, 'running')
  await well(second.send, 'jsm', 'POST', `/jobs/${id}/succeed`, { worker: 'w' })
})

test('a pod is not given the datum that a pod of its name holds under another key', async t => {
  const run = await walkable(t)
  const [first, second] = [
    await keyOf(run, { roles: both, queues: null }),
    await keyOf(run, { roles: both, queues: null }),
  ]
  const { job } = await well<{ job: { id: string } }>(first.send, 'falconeri', 'POST', '/jobs', { job: run.spec() })
  const reserve = (key: Key) =>
    well<{ datum: { id: string } } | null>(key.send, 'falconeri', 'POST', `/jobs/${job.id}/reserve_next_datum`, {
      pod_name: 'pod',
      node_name: 'n',
    })
  const { datum } = (await reserve(first))!
  assert.equal(await reserve(second), null)
  assert.equal((await reserve(first))?.datum.id, datum.id)
})

async function walkable(t: TestContext): Promise<FalconeriRig> {
  const before = { server: { keysOnly: true }, before: first }
  const run = await falconeriRig(t, before)
  await run.inbox.write({ a: 'A' })
  return run
}

const first = (engine: FalconeriRig['engine']) => engine.createKey({ name: 'first', role: 'admin' })

async function keyOf(run: FalconeriRig, { roles: held, queues }: Pick<Key, 'roles' | 'queues'>): Promise<Key> {
  const asked = { name: held.join(' '), roles: held, ...(queues !== null && { queues }) }
  const { secret } = await run.engine.createKey(asked)
  return {
    roles: held,
    queues,
    async send(dialect, method, path, body) {
      const response = await fetch(`${run.server.url}/dialects/${dialect}${path}`, {
        method,
        headers: {
          authorization: shownTo(dialects[dialect], secret),
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      return { status: response.status, text: await response.text() }
    },
  }
}

function shownTo({ name }: Dialect, secret: string): string {
  return name === 'falconeri' ? `Basic ${Buffer.from(`falconeri:${secret}`).toString('base64')}` : `Bearer ${secret}`
}

function pathOf(route: string, { params = {}, query = '' }: Asked): string {
  return route.split(' ')[1]!.replace(/\{(\w+)\}/g, (_, param: string) => params[param]!) + query
}

function allows({ roles: held, queues }: Key, { needs, scoped, held: isHeld }: Recipe, claimedIt: boolean): boolean {
  if (needs.length === 0) return true
  if (scoped === true && queues?.includes('mine')) return false
  return needs.some(
    set => set.every(permission => may(held, permission)) && (isHeld !== true || claimedIt || !set.includes('work')),
  )
}

function mayClaim({ roles: held, queues }: Key, name: DialectName): boolean {
  const wanted = claimNeeds[name] ?? []
  return !queues?.includes('mine') && wanted.length > 0 && wanted.every(permission => may(held, permission))
}

const keyTitle = ({ roles: held, queues }: Key) =>
  `${held.join(' and ')}${queues === null ? '' : ` for ${queues.includes('mine') ? 'other' : 'these'} queues`}`
