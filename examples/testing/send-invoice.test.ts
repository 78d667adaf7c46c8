import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runTask, testEngine } from 'pawl/testing'
import { sendInvoice } from './send-invoice.ts'

test('an invalid address is given up at once', async () => {
  const task = sendInvoice({ send: async () => {} })
  const { outcome, error } = await runTask(task, { order: '1001', to: 'nobody' })
  assert.equal(outcome, 'failed')
  assert.equal(error?.permanent, true)
})

test('while the mail server is away an invoice is tried again every minute, and goes out once', async t => {
  const engine = await testEngine()
  t.after(() => engine.close())
  let isAway = true
  const sent: string[] = []
  const task = sendInvoice({
    async send(to) {
      if (isAway) throw new Error('The mail server does not answer.')
      sent.push(to)
    },
  })

  const { id } = await engine.enqueue(task, { order: '1001', to: 'ada@example.com' })
  await engine.drain([task])
  assert.equal((await engine.task(id)).state, 'retrying')

  isAway = false
  await engine.advance(60)
  await engine.drain([task])
  const done = await engine.waitFor({ type: 'send-invoice' }, 'succeeded')
  assert.deepEqual(done.output, { sentTo: 'ada@example.com' })
  assert.deepEqual(sent, ['ada@example.com'])
})
