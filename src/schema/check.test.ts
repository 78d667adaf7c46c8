import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Check } from 'typebox/value'
import { closestWord } from '../kernel/suggest.ts'
import { checkOptions, faultOf, moment, nested, number, oneOf, orNull, type Static, text } from './check.ts'

const options = ['leaseSeconds', 'heartbeatSeconds', 'priority', 'runAt', 'dedupeKey']

test('a misspelt word is answered with the one that was meant', () => {
  assert.equal(closestWord('leaseSecond', options), 'leaseSeconds')
  assert.equal(closestWord('leaseseconds', options), 'leaseSeconds')
  assert.equal(closestWord('prioritiy', options), 'priority')
  assert.equal(closestWord('runat', options), 'runAt')
  assert.equal(closestWord('dedupKey', options), 'dedupeKey')
  assert.equal(closestWord('hearbeatSecnods', options), 'heartbeatSeconds')
})

test('the nearest of several that are near is suggested', () => {
  assert.equal(closestWord('fail', ['mail', 'fails', 'fail']), 'fail')
  assert.equal(closestWord('cancle', ['candle', 'cancel', 'cancelled']), 'candle')
})

test('a word that is like none is answered with none', () => {
  assert.equal(closestWord('colour', options), undefined)
  assert.equal(closestWord('', options), undefined)
  assert.equal(closestWord('anything', []), undefined)
})

test('a word of many megabytes is compared with none, and told in short', () => {
  const long = 'x'.repeat(20_000_000)
  assert.equal(closestWord(long, options), undefined)
  const isShortened = (error: { details: { option: string } }) => error.details.option === `${'x'.repeat(100)}…`
  assert.throws(() => checkOptions({ [long]: 1 }, {}, 'options'), isShortened)
  assert.equal(faultOf(nested({}), { [long]: 1 }), `not have "${'x'.repeat(100)}…"`)
})

const person = nested(
  {
    name: text(5),
    age: number({ from: 0, to: 150, whole: true }),
    role: oneOf(['reader', 'writer']),
    boss: orNull(text(5)),
    born: moment,
  },
  ['name'],
)

test('TypeBox reads our schemas, and finds the same faults', () => {
  const good: Static<typeof person>[] = [
    { name: 'Ann' },
    { name: 'Ann', age: 7, role: 'writer', boss: null, born: '2026-01-01T00:00:00Z' },
  ]
  const bad = [
    {},
    null,
    { name: '' },
    { name: 'Ann\0' },
    { name: 'Ann', age: 0.5 },
    { name: 'Ann', what: 1 },
    { name: 1 },
  ]
  for (const value of good) assert.deepEqual([Check(person, value), faultOf(person, value)], [true, undefined])
  for (const value of bad) assert.deepEqual([Check(person, value), typeof faultOf(person, value)], [false, 'string'])
})
