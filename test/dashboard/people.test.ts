/** Gates, dead letters, and users with a key. */
import assert from 'node:assert/strict'
import * as z from 'zod'
import { defineTask } from '../../src/worker/define-task.ts'
import { eventually } from '../harness/eventually.ts'
import { inBrowser } from './browser.ts'

const gated = { name: 'invoices', stages: [{ name: 'review', gate: { approvers: 1, ask: 'Are the totals right?' } }] }

inBrowser(
  'a gate says what is asked, is approved with a comment and data, and both tabs see the job go on',
  {},
  async ({ engine, page, open }) => {
    const { id, stages } = await engine.submit(gated)
    const other = await open(`/#/jobs/${id}`)
    await other.getByText('Waiting for approval of review.').waitFor()
    await page.getByText('A gate is waiting').waitFor()
    await page.getByRole('link', { name: /Gates/ }).click()
    await page.getByText('Are the totals right?').waitFor()
    await page.getByLabel('Comment').fill('checked twice')
    await page.getByLabel(/Data for later stages/).fill('{"total": 12}')
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByText('No gate is waiting for approval.').waitFor()
    await other.locator('.react-flow__node', { hasText: 'review' }).getByText('succeeded').waitFor()
    const [approval] = (await engine.stage(stages[0]!.id)).approvals
    assert.deepEqual([approval!.comment, approval!.data], ['checked twice', { total: 12 }])
  },
)

inBrowser('a gate is rejected, and the job says so', {}, async ({ engine, open }) => {
  const { id } = await engine.submit(gated)
  const page = await open('/#/gates')
  await page.getByLabel('Comment').fill('the sum is wrong')
  await page.getByRole('button', { name: 'Reject' }).click()
  await page.getByText('No gate is waiting for approval.').waitFor()
  assert.equal((await engine.job(id)).state, 'failed')
})

inBrowser(
  'dead letters are grouped, tried dry, and redriven with another payload; the progress is shown',
  {},
  async ({ engine, open }) => {
    await engine.enqueueMany([1, 2, 3, 4].map(payload => ({ type: 'mail', payload, retry: { attempts: 1 } })))
    const claimed = await engine.claims({ worker: 'w', queues: ['mail'], claim: 4 })
    for (const { id, epoch, payload } of claimed) {
      const message = payload === 4 ? 'out of paper' : `no host ${payload}`
      await engine.fail(id, epoch, { error: { message } })
    }
    const page = await open('/#/dead-letters')
    await page.getByText('no host #').waitFor()
    await page.getByRole('button', { name: 'Redrive …' }).first().click()
    await page.getByText('All 3 dead letters with this type, queue, reason and message').waitFor()
    await page.getByLabel(/New payload/).fill('{"to": "Ada"}')
    await page.getByRole('button', { name: 'Dry run' }).click()
    await page.getByText('3 would be redriven, 0 would be refused.').waitFor()
    assert.equal((await engine.deadLetters()).items.length, 4)
    await page.getByRole('button', { name: 'Redrive', exact: true }).click()
    await page.getByText(/Redrive done: 3 of 3/).waitFor()
    const { items } = await engine.tasks({ state: 'queued' })
    assert.deepEqual(
      items.map(({ payload }) => payload),
      [{ to: 'Ada' }, { to: 'Ada' }, { to: 'Ada' }],
    )
  },
)

inBrowser(
  'a payload is edited against what its worker takes, and one that does not fit cannot be sent',
  {},
  async ({ engine, open }) => {
    const letter = defineTask({
      type: 'letter',
      retry: { attempts: 1 },
      payload: z.object({ to: z.string() }),
      handler: async () => {},
    })
    const { id } = await engine.enqueue(letter, { to: 'Ada' })
    const [claimed] = await engine.claims({ worker: 'w', queues: ['letter'] })
    await engine.fail(claimed!.id, claimed!.epoch, { error: { message: 'no such street' } })
    const page = await open('/#/dead-letters')
    await page.getByRole('button', { name: 'Redrive …' }).click()
    const payload = page.getByLabel(/New payload/)
    await page.getByRole('button', { name: 'Use the latest payload' }).click()
    await eventually('its payload is shown', async () => (await payload.inputValue()).includes('Ada'))
    await payload.fill('{"to": 7}')
    await page.getByText('Expected "string"').waitFor()
    assert.ok(await page.getByRole('button', { name: 'Redrive', exact: true }).isDisabled())
    await payload.fill('{"to": "Bob"}')
    await page.getByRole('button', { name: 'Redrive', exact: true }).click()
    await page.getByText(/Redrive done: 1 of 1/).waitFor()
    assert.deepEqual((await engine.task(id)).payload, { to: 'Bob' })
  },
)

inBrowser('what somebody types while a payload loads stays', {}, async ({ engine, open }) => {
  await engine.enqueue('letter', { to: 'Ada' }, { retry: { attempts: 1 } })
  const [claimed] = await engine.claims({ worker: 'w', queues: ['letter'] })
  await engine.fail(claimed!.id, claimed!.epoch, { error: { message: 'no such street' } })
  const page = await open('/#/dead-letters')
  await page.getByRole('button', { name: 'Redrive …' }).click()
  let answer = () => {}
  const typed = new Promise<void>(resolve => {
    answer = resolve
  })
  const path = `**/v1/tasks/${claimed!.id}`
  await page.route(path, async route => {
    await typed
    await route.continue()
  })
  const answered = page.waitForResponse(path)
  await page.getByRole('button', { name: 'Use the latest payload' }).click()
  const payload = page.getByLabel(/New payload/)
  await payload.fill('{"to": "Bob"}')
  answer()
  await (await answered).finished()
  await page.getByRole('button', { name: 'Dry run' }).click()
  await page.getByText('1 would be redriven, 0 would be refused.').waitFor()
  assert.equal(await payload.inputValue(), '{"to": "Bob"}')
})

const locked = {
  server: { keysOnly: true },
  before: (engine: { createKey(key: object): Promise<unknown> }) => engine.createKey({ name: 'root', role: 'admin' }),
}

inBrowser(
  'where a key is wanted the page asks for one, and a viewer’s sees no buttons; the server refuses what it would ask for',
  { ...locked, expects: /401/ },
  async ({ engine, page, server }) => {
    const { id } = await engine.submit(gated)
    const { secret } = await engine.createKey({ name: 'looker', role: 'viewer' })
    await page.getByLabel('Key', { exact: true }).fill('wrong')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('The key is unknown or was revoked.').waitFor()
    await page.getByLabel('Key', { exact: true }).fill(secret)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('looker (viewer)').waitFor()
    await page.goto(`${server.url}/#/jobs/${id}`)
    await page.getByRole('heading', { name: 'invoices' }).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Cancel' }).count(), 0)
    await page.goto(`${server.url}/#/gates`)
    await page.getByText('Your key does not allow you to approve.').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Approve' }).count(), 0)
    const refused = await fetch(`${server.url}/v1/jobs/${id}/cancel`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: '{}',
    })
    assert.equal(refused.status, 403)
  },
)

inBrowser('an empty system explains itself, and its button starts a sample job', {}, async ({ engine, page }) => {
  await page.getByRole('button', { name: 'Start the sample job' }).click()
  await page.getByRole('heading', { name: 'sample' }).waitFor()
  await eventually('the job is there', async () => (await engine.jobs()).items.length === 1)
})
