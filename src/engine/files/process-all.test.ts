import assert from 'node:assert/strict'
import { test } from 'node:test'
import { latch } from '../../../test/harness/eventually.ts'
import { processAll } from './promote.ts'

test('where there is nothing to do, one look finds that out', async () => {
  let takes = 0
  const take = async () => {
    takes += 1
    return undefined
  }
  await processAll(4, take, () => assert.fail('there is nothing'))
  assert.equal(takes, 1)
})

test('everything is done, as many at once as may be', async () => {
  const left = [1, 2, 3, 4, 5, 6, 7]
  const done: number[] = []
  const allBusy = latch<void>()
  let busy = 0
  await processAll(
    3,
    async () => left.shift(),
    async item => {
      busy += 1
      assert.ok(busy <= 3)
      if (busy === 3) allBusy.open()
      await allBusy.opened
      busy -= 1
      done.push(item)
    },
  )
  assert.deepEqual(done.sort(), [1, 2, 3, 4, 5, 6, 7])
})

test('an error in one item rejects the whole call', async () => {
  const left = [1]
  const fail = async () => {
    throw new Error('no')
  }
  await assert.rejects(
    processAll(2, async () => left.shift(), fail),
    /no/,
  )
})
