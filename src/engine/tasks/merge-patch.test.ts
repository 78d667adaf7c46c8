import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mergePatch } from './patch.ts'

test('a merge patch does what RFC 7396 says', () => {
  const cases: [target: unknown, patch: unknown, result: unknown][] = [
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [
      ['a', 'b'],
      ['c', null],
      ['c', null],
    ],
    [{ a: 'b' }, ['c'], ['c']],
    [{ a: 'foo' }, null, null],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: 'b', c: null }, { a: 'b' }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ]
  for (const [target, patch, result] of cases) assert.deepEqual(mergePatch(target, patch), result)
})

test('a key that JavaScript gives a meaning to is a key like any other', () => {
  const patch: unknown = JSON.parse('{"__proto__": {"admin": true}, "constructor": 1}')
  const merged = mergePatch({ a: 1 }, patch)
  assert.equal(JSON.stringify(merged), '{"a":1,"__proto__":{"admin":true},"constructor":1}')
  assert.equal(({} as { admin?: boolean }).admin, undefined)
})
