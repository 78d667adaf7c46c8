import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { marieRig } from '../harness/marie-rig.ts'

test('marie: capacity is what live workers offer to each queue, and used is what they hold', async t => {
  const rig = await marieRig(t)
  assert.deepEqual((await rig.marie.capacity()).result, { slots: [], totals: { capacity: 0, used: 0, available: 0 } })
  for (const name of ['extract', 'extract', 'extract', 'ocr', 'idle']) await rig.submit({ name, data: {} })
  const join = (worker: string, queues: string[], slots: number, claim: number) =>
    rig.client.sync({ worker, session: randomUUID(), queues, slots, claim })
  await join('worker-1', ['extract'], 4, 1)
  await join('worker-2', ['extract', 'ocr'], 3, 1)
  await rig.client.sync({ worker: 'sh', queues: ['ocr'], claim: 1 })
  const { result } = await rig.marie.capacity()
  const shared = 'shared with'
  assert.deepEqual(result.slots, [
    { ...slot('extract', 7, 2, 5, ['worker-1', 'worker-2']), notes: `${shared} ocr` },
    slot('idle', 0, 0, 0, []),
    { ...slot('ocr', 4, 1, 2, ['sh']), notes: `${shared} extract` },
  ])
  assert.deepEqual(result.totals, { capacity: 8, used: 3, available: 5 })

  await rig.advance(61)
  const { slots, totals } = (await rig.marie.capacity()).result
  assert.deepEqual(totals, { capacity: 3, used: 3, available: 0 })
  assert.deepEqual(slots[0], slot('extract', 2, 2, 0, ['worker-1', 'worker-2']))
})

test('marie: what a worker claims ahead of need is used, and said so', async t => {
  const rig = await marieRig(t)
  for (const _ of [1, 2, 3]) await rig.submit({ name: 'extract', data: {} })
  await rig.client.sync({ worker: 'eager', session: randomUUID(), queues: ['extract'], slots: 2, claim: 3 })
  const { slots, totals } = (await rig.marie.capacity()).result
  assert.deepEqual(slots, [{ ...slot('extract', 2, 3, 0, ['eager']), notes: '1 claimed ahead of need' }])
  assert.deepEqual(totals, { capacity: 2, used: 3, available: 0 })
})

test('marie: capacity names 100 queues and sums up the others, also those that are only served', async t => {
  const rig = await marieRig(t)
  const names = Array.from({ length: 150 }, (_, n) => `q${n}`)
  await rig.engine.enqueueMany(names.flatMap(queue => ['t', 't'].map(type => ({ type, queue }))))
  await rig.client.sync({ worker: 'w', session: randomUUID(), queues: names, slots: 400, claim: 300 })
  await rig.client.sync({ worker: 'idle', session: randomUUID(), queues: ['unheard'], slots: 5, claim: 1 })
  const { slots, totals } = (await rig.marie.capacity()).result
  assert.deepEqual([slots.length, totals], [101, { capacity: 405, used: 300, available: 105 }])
  const { notes: _, ...others } = slots.find(({ name }) => name === '_other')!
  const { notes: __, ...expected } = slot('_other', 405, 100, 105, ['w'])
  assert.deepEqual(others, expected)
})

const slot = (name: string, capacity: number, used: number, available: number, holders: string[]) => ({
  name,
  capacity,
  target: capacity,
  used,
  available,
  holders,
  notes: '',
})
