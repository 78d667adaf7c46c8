import assert from 'node:assert/strict'
import { test } from 'node:test'
import { closestWord } from '../kernel/suggest.ts'
import { checkOptions, nested } from './check.ts'

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
  const told = (error: { details: { option: string } }) => error.details.option === `${'x'.repeat(100)}…`
  assert.throws(() => checkOptions({ [long]: 1 }, {}, 'options'), told)
  assert.equal(nested({})({ [long]: 1 }), `not have "${'x'.repeat(100)}…"`)
})
