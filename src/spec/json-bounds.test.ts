import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { seed } from '../../test/harness/dice.ts'
import {
  JsonBounds,
  mostContainers,
  mostLevels,
  mostMembers,
  mostSequences,
  mostTexts,
  mostValues,
  parseBoundedJson,
} from './json-bounds.ts'

const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
const depthOf = (value: unknown): number => (Array.isArray(value) ? 1 + Math.max(0, ...value.map(depthOf)) : 0)

test('JSON is left as it is, wherever it is cut into chunks', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 8 }), fc.nat(), (text, at) => {
      const bytes = Buffer.from(text)
      const middle = at % (bytes.length + 1)
      const bounds = new JsonBounds()
      for (const chunk of [bytes.subarray(0, middle), bytes.subarray(middle)])
        assert.equal(bounds.take(chunk), undefined)
      assert.equal(bytes.toString(), text)
    }),
    { seed, numRuns: 500 },
  )
  const odd = JSON.stringify({ text: '[{,'.repeat(10_000), quoted: '\\"[[', 'key [': '\\\\', é: '［' })
  assert.deepEqual(parseBoundedJson(odd), JSON.parse(odd))
})

test('what is nested too deep is cut off, and what is beside it stays', () => {
  assert.deepEqual(parseBoundedJson(nested(mostLevels)), JSON.parse(nested(mostLevels)))
  const deep = `{"a": ${nested(100_000)}, "b": "]]", "c": [1, ${'{"x":'.repeat(1000)}"}"${'}'.repeat(1000)}, 2]}`
  const bytes = Buffer.from(deep)
  const bounds = new JsonBounds()
  for (let at = 0; at < bytes.length; at += 7) assert.equal(bounds.take(bytes.subarray(at, at + 7)), undefined)
  const { a, b, c } = JSON.parse(bytes.toString())
  assert.deepEqual([depthOf(a), b, c[0], c[2]], [mostLevels - 1, ']]', 1, 2])
})

const faultOf = (text: string) => new JsonBounds().take(Buffer.from(text))

test('text that would become too many objects or values is refused', () => {
  const list = (item: string, times: number) => `[${`${item},`.repeat(times)}0]`
  assert.equal(faultOf(list('{}', mostContainers - 1)), undefined)
  assert.match(faultOf(list('{}', mostContainers)) ?? '', /more than 1,000,000 lists and objects/)
  assert.match(faultOf(list(nested(100), mostContainers / 100)) ?? '', /more than 1,000,000 lists and objects/)
  assert.equal(faultOf(list('0', mostValues - 3)), undefined)
  assert.match(faultOf(list('0', mostValues)) ?? '', /more than 5,000,000 values/)
})

test('objects may have many members in all, but not in ever different sequences', () => {
  const objects = (name: (object: number, member: number) => number) =>
    `[${Array.from({ length: 40_000 }, (_, object) => {
      const members = Array.from({ length: 24 }, (_, member) => `"k${name(object, member)}":1`)
      return `{${members.join()}}`
    }).join()}]`
  assert.equal(faultOf(objects((_, member) => member)), undefined)
  assert.equal(faultOf(objects((object, member) => (object % 1000) + member)), undefined)
  const more = new RegExp(`more than ${mostSequences.toLocaleString('en')} different sequences`)
  assert.match(faultOf(objects((object, member) => object * 24 + member)) ?? '', more)
  assert.match(faultOf(objects((object, member) => (object * 24 + member * 7919) % 9973)) ?? '', more)
  assert.match(faultOf(`[${'{"a":1},'.repeat(mostMembers)}{"a":1}]`) ?? '', /lists and objects/)
})

test('a list may hold many short texts, but not ever different ones', () => {
  const list = (length: number, text: (n: number) => string) =>
    JSON.stringify(Array.from({ length }, (_, n) => text(n)))
  assert.equal(faultOf(list(mostTexts, n => n.toString(36))), undefined)
  assert.equal(faultOf(list(4 * mostTexts, n => `${n % 1000}`)), undefined)
  const more = /more than 400,000 different short strings/
  assert.match(faultOf(list(2 * mostTexts, n => n.toString(36))) ?? '', more)
})
