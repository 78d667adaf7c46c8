/** Cursors are opaque, but anyone can write one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { namedOperations } from '../../src/protocol/operations.ts'
import { served } from '../harness/served.ts'

const encoded = (position: unknown) => Buffer.from(JSON.stringify(position)).toString('base64url')

const names = [
  'id',
  'seq',
  'us',
  'name',
  'session',
  'after',
  'before',
  'epoch',
  'n',
  'tx',
  'k',
  'of',
  'entityId',
  'atUs',
]
const values = [null, '', 'x', '\0', '\ud800', 'x'.repeat(300), -1, 1.5, 1e300, 2 ** 31, 2 ** 53, [], {}, ['x'], true]
const forged = [
  ...values.map(value => encoded(Object.fromEntries(names.map(name => [name, value])))),
  ...['999999999999999', '9'.repeat(16), '-1', '00', '1e5', 'e30', '!', crypto.randomUUID(), '\0', 'x'.repeat(499)],
]

test('a forged cursor is refused or returns a page, and never causes a fault of the server', async t => {
  const { engine, request } = await served(t)
  const job = await engine.submit({ name: 'j', stages: [{ name: 's', task: 't', payloads: [1] }] })
  const { items } = await engine.jobTasks(job.id)
  const idFor = (path: string) =>
    path.startsWith('/v1/jobs') ? job.id : path.startsWith('/v1/stages') ? job.stages[0]!.id : items[0]!.id
  const paths = namedOperations.flatMap(([, { method, path, query = {} }]) => {
    if (method !== 'GET' || !('cursor' in query)) return []
    const lists = [path.replace('{id}', idFor(path))]
    return 'order' in query ? [...lists, `${lists}?order=name`] : lists
  })
  assert.ok(paths.length > 10)
  for (const path of paths) {
    for (const cursor of forged) {
      const { status } = await request(`${path}${path.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(cursor)}`)
      assert.ok(status < 500, `${status} for ${path} with ${cursor}`)
    }
  }
})
