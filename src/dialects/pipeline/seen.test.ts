import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readSeen, writeSeen } from './stream.ts'

test('an id says what was seen, whatever that was', () => {
  const far = fc.integer({ min: 0, max: 9 })
  fc.assert(
    fc.property(far, fc.array(far, { maxLength: 50 }), (job, stages) => {
      assert.deepEqual(readSeen(writeSeen({ job, stages })), { job, stages })
    }),
  )
})

test('the id of a job of very many stages is short, where they are equally far', () => {
  const stages = [...new Array<number>(9000).fill(2), 1]
  const id = writeSeen({ job: 0, stages })
  assert.ok(id.length < 20, id)
  assert.deepEqual(readSeen(id).stages, stages)
})

test('stages that were passed over are not seen', () => {
  const stages: number[] = []
  stages[3] = 1
  assert.deepEqual(readSeen(writeSeen({ job: 2, stages })), { job: 2, stages: [0, 0, 0, 1] })
})

test('an id that nobody wrote says nothing, and costs nothing', () => {
  for (const id of [undefined, '', 'x', '1', '1:2.', '1:2x', ':1', '1:-2', '0:1x99999.1x99999', '0:9999999999']) {
    assert.deepEqual(readSeen(id), { job: 0, stages: [] }, id)
  }
})
