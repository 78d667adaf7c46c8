import assert from 'node:assert/strict'
import { test } from 'node:test'
import { served } from '../../test/harness/served.ts'
import { mostLevels, mostValues, sizeFault } from './bodies.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

test('a body that is nested too deep, or holds too many values, is refused before it is parsed', () => {
  const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
  assert.equal(sizeFault(bytes(nested(mostLevels))), undefined)
  assert.match(sizeFault(bytes(nested(mostLevels + 1))) ?? '', /nested more than 500 levels/)
  assert.match(sizeFault(bytes('{"a":'.repeat(mostLevels + 1))) ?? '', /nested more than 500 levels/)
  assert.equal(sizeFault(bytes(`[${'0,'.repeat(mostValues - 2)}0]`)), undefined)
  assert.match(sizeFault(bytes(`[${'0,'.repeat(mostValues)}0]`)) ?? '', /more than 5,000,000 values/)
})

test('brackets and commas in texts are not counted', () => {
  const text = JSON.stringify({ text: '[{,'.repeat(10_000), quoted: '\\"[[', 'key [': '\\\\', é: '［' })
  assert.equal(sizeFault(bytes(text)), undefined)
})

test('megabytes of brackets are answered with a problem', async t => {
  const { request } = await served(t)
  const response = await request('/v1/tasks', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '['.repeat(10_000_000),
  })
  assert.equal(response.status, 400)
  const { code, details } = (await response.json()) as { code: string; details: { why: string } }
  assert.deepEqual([code, details.why], ['BODY_INVALID', 'it is nested more than 500 levels deep'])
})
