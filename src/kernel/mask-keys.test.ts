import assert from 'node:assert/strict'
import { test } from 'node:test'
import { maskKeys } from './sanitize.ts'

const key = `pawl_${'aB3-_'.repeat(8)}xyz`

test('keys and passwords are hidden, wherever they stand in a text', () => {
  for (const [text, masked] of [
    [`the key ${key} is unknown`, 'the key pawl_*** is unknown'],
    ['postgres://ada:s3c:r@t@db:5432/pawl?x=1', 'postgres://ada:***@db:5432/pawl?x=1'],
    ['postgres://db/pawl?password=sesame&x=1', 'postgres://db/pawl?password=***&x=1'],
    [`Authorization: Bearer ${key}`, 'Authorization: Bearer pawl_***'],
    ['authorization: 0123456789', 'authorization: ***'],
    ['{"authorization":"Basic ZmFsY29uZXJpOng=","host":"a"}', '{"authorization":"Basic ***","host":"a"}'],
    ['sent bearer eyJhbGciOiJIUzI1NiJ9.e30.abc', 'sent bearer ***'],
  ] as const) {
    assert.equal(maskKeys(text), masked)
  }
})

test('a text without secrets stays as it is', () => {
  for (const text of [
    'http://127.0.0.1:7295/v1/jobs?name=a@b',
    'file:///data/a:b@c',
    'the setting PAWL_KEY, the Secret pawl-worker-key, the schema pawl_test',
    'a server wants `Authorization: Bearer pawl_…`',
    'Basic authentication is what Falconeri uses',
  ]) {
    assert.equal(maskKeys(text), text)
  }
})

test('masking JSON leaves JSON', () => {
  const facts = { error: `postgres://a:b"c@d ${key}`, headers: { authorization: `Bearer ${key}` }, more: 'x' }
  const masked = maskKeys(JSON.stringify(facts))
  assert.ok(!masked.includes(key))
  assert.equal(JSON.parse(masked).more, 'x')
})

test('a long line costs no more than its length', () => {
  for (const part of ['pawl_', '://a:', 'authorization: bearer ', '?password=', 'bearer ', '://', ':@']) {
    const text = part.repeat(1_000_000 / part.length)
    assert.ok(maskKeys(text).length <= text.length * 2)
  }
})
