import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstIdAt, newId } from './id.ts'

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

test('ids are UUIDs of version 7', () => {
  for (let n = 0; n < 5000; n++) assert.match(newId(), uuidV7)
})

test('every id is greater than the one before it, also within a millisecond and when the clock steps back', t => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 60_000 })
  let last = newId()
  const rises = () => {
    const id = newId()
    assert.ok(id > last, `${id} after ${last}`)
    last = id
  }
  for (let n = 0; n < 100_000; n++) rises()
  t.mock.timers.setTime(Date.now() - 5000)
  for (let n = 0; n < 1000; n++) rises()
  t.mock.timers.setTime(Date.now() + 10_000)
  for (let n = 0; n < 1000; n++) rises()
  assert.match(last, uuidV7)
})

test('an id tells the millisecond in which it was made', t => {
  const now = Date.now() + 3_600_000
  t.mock.timers.enable({ apis: ['Date'], now })
  const id = newId()
  assert.equal(Number.parseInt(id.replace('-', '').slice(0, 12), 16), now)
  assert.ok(firstIdAt(now) < id)
  assert.ok(firstIdAt(now + 1) > id)
})

test('a range of ids can begin at any moment, even before there was time', () => {
  assert.equal(firstIdAt(0), '00000000-0000-0000-0000-000000000000')
  assert.equal(firstIdAt(-5), firstIdAt(0))
  assert.equal(firstIdAt(1.9), '00000000-0001-0000-0000-000000000000')
})
