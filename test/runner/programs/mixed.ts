/** A test file for the runner's own tests. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { database } from '../../harness/databases.ts'

test(`it runs on ${database()}`, () => {})
test('it is skipped', { skip: 'for a reason' }, () => {})
test('it fails', () => assert.equal(1, 2))
describe('a suite', () => {
  test('it passes', () => {})
  test('it has a test inside', async t => {
    await t.test('which fails', () => assert.fail('deep inside'))
  })
})
