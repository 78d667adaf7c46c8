/** Buttons for stages, tasks and several jobs at once, and the overview of what needs attention. */
import assert from 'node:assert/strict'
import { findInputs } from '../../src/babysitter/chores.ts'
import { eventually } from '../harness/eventually.ts'
import { claimCommands, doFileChores, folder, putOut } from '../harness/files.ts'
import { inBrowser } from './browser.ts'

const retry = { attempts: 1 }

inBrowser('several jobs are paused at once, resumed and, when they failed, retried', {}, async ({ engine, open }) => {
  const spec = { name: 'invoices', stages: [{ name: 'extract', task: 'extract', retry }] }
  const ids = [(await engine.submit(spec)).id, (await engine.submit(spec)).id]
  const page = await open('/#/jobs')
  const all = async (action: string, state: string) => {
    await page.getByLabel('Select all on this page').check()
    await page.getByRole('button', { name: `${action} 2` }).click()
    await page.getByRole('button', { name: 'Yes' }).click()
    await eventually(`all are ${state}`, async () => {
      const states = await Promise.all(ids.map(async id => (await engine.job(id)).state))
      return states.every(each => each === state)
    })
    await page.getByRole('button', { name: 'Yes' }).waitFor({ state: 'detached' })
  }
  await page.getByRole('link', { name: 'invoices' }).nth(1).waitFor()
  await all('Pause', 'paused')
  await all('Resume', 'pending')
  for (const { id, epoch } of await engine.claims({ worker: 'w', queues: ['extract'], claim: 2 })) {
    await engine.fail(id, epoch, { error: { message: 'no' } })
  }
  await page.getByText('failed').nth(1).waitFor()
  await all('Retry', 'pending')
})

inBrowser('a stage is held, let go on, cancelled and retried by its buttons', {}, async ({ engine, open }) => {
  const { stages } = await engine.submit({
    name: 'invoices',
    stages: [
      { name: 'extract', task: 'extract' },
      { name: 'print', task: 'print' },
    ],
  })
  const [extract, print] = stages.map(({ id }) => id)
  const page = await open(`/#/stages/${print}`)
  await page.getByRole('button', { name: 'Hold' }).click()
  await eventually('it is held', async () => (await engine.stage(print!)).held)
  await page.goto(`${page.url().split('#')[0]}#/stages/${extract}`)
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('button', { name: 'Yes' }).click()
  await page.getByText('cancelled').first().waitFor()
  await page.getByRole('button', { name: 'Retry' }).click()
  await page.getByRole('button', { name: 'Yes' }).click()
  await page.getByText('pending').first().waitFor()
  assert.equal((await engine.stage(extract!)).round, 2)
})

inBrowser(
  'a task shows its attempts side by side with their stacks, and is redriven, cancelled and resumed by its buttons',
  {},
  async ({ engine, open }) => {
    const { id } = await engine.enqueue('mail', { to: 'Ada' }, { retry: { attempts: 2, delaySeconds: 0 } })
    for (const worker of ['ada', 'bob']) {
      const [claimed] = await engine.claims({ worker, queues: ['mail'], start: true })
      const error = { message: `${worker} found no host`, stack: `Error: no host\n    at ${worker} (mail.ts:1:1)` }
      await engine.fail(claimed!.id, claimed!.epoch, { error })
    }
    const page = await open(`/#/tasks/${id}`)
    const attempts = page.getByLabel('Attempts')
    for (const worker of ['ada', 'bob']) {
      await attempts.getByText(`by ${worker}`).waitFor()
      await attempts.getByText(`at ${worker} (mail.ts:1:1)`).waitFor({ state: 'attached' })
    }
    await page.getByRole('button', { name: 'Redrive', exact: true }).click()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Yes' }).click()
    await page.getByRole('button', { name: 'Resume' }).click()
    await eventually('it waits again', async () => (await engine.task(id)).state === 'queued')
    const types = (await engine.taskEvents(id)).items.map(({ type }) => type)
    assert.deepEqual(types.slice(-3), ['task.queued', 'task.cancelled', 'task.queued'])
  },
)

inBrowser('a task’s log grows while it is looked at', {}, async ({ engine, open }) => {
  const { id } = await engine.enqueue('mail', null)
  const [claimed] = await engine.claims({ worker: 'w', queues: ['mail'], start: true })
  const say = (n: number, message: string) =>
    engine.sync({ worker: 'w', beats: [{ id, epoch: claimed!.epoch, logs: [{ n, message }] }] })
  await say(1, 'begun')
  const page = await open(`/#/tasks/${id}`)
  await page.getByRole('tab', { name: 'logs' }).click()
  await page.getByLabel('Logs').getByText('begun').waitFor()
  await say(2, 'half of it')
  await page.getByLabel('Logs').getByText('half of it').waitFor()
  assert.equal(await page.getByLabel('Logs').getByText('begun').count(), 1)
})

inBrowser(
  'the overview calls for what needs a person: a gate, dead letters by reason, a failed job, a silent worker, a stuck job',
  {},
  async ({ engine, advance, open }) => {
    const gate = { approvers: 1, ask: 'Are the totals right?' }
    await advance(-200)
    await engine.submit({ name: 'books', stages: [{ name: 'review', gate }] })
    await engine.submit({ name: 'letters', stages: [{ name: 'send', task: 'send', retry }] })
    const [lost] = await engine.claims({ worker: 'w', queues: ['send'] })
    await engine.fail(lost!.id, lost!.epoch, { error: { message: 'no such street' } })
    await engine.submit({ name: 'census', stages: [{ name: 'count', task: 'count' }] })
    await engine.enqueue('slow', null)
    await engine.sync({ worker: 'silent', session: crypto.randomUUID(), queues: ['slow'], claim: 1 })
    await advance(200)
    const page = await open('/')
    const calls = page.getByLabel('Needs attention')
    for (const text of [
      'A gate is waiting',
      '1 dead letter',
      '1 exhausted_retries',
      'A job failed in the last hour',
      'Workers stopped reporting',
      'silent (1 task held)',
      'census: no worker serves queue count',
    ]) {
      await calls.getByText(text, { exact: true }).waitFor()
    }
    await page.locator('canvas').nth(3).waitFor()
    await page.getByText('Live events').first().waitFor()
  },
)

inBrowser('a tab that nobody looks at says that it is paused, and goes on when it is', {}, async ({ engine, open }) => {
  const page = await open('/#/jobs')
  await page.getByText('live', { exact: true }).waitFor()
  const show = (isHidden: boolean) =>
    page.evaluate(`Object.defineProperty(document, 'hidden', { configurable: true, value: ${isHidden} })
      document.dispatchEvent(new Event('visibilitychange'))`)
  await show(true)
  await page.getByRole('status').getByText('paused').waitFor()
  await engine.submit({ name: 'letters', stages: [{ name: 'send', task: 'send' }] })
  await show(false)
  await page.getByText('live', { exact: true }).waitFor()
  await page.getByRole('link', { name: 'letters', exact: true }).waitFor()
})

inBrowser('a job’s files are listed, and each says what made it and what was made of it', {}, async (run, t) => {
  const { engine, open } = run
  const [inbox, outbox] = [await folder(t), await folder(t)]
  await inbox.write({ scan: 'S' })
  const { id } = await engine.submit({
    name: 'scans',
    stages: [{ name: 'read', run: { command: ['true'] }, inputs: { doc: { uri: inbox.uri } }, outputs: outbox.uri }],
  })
  await findInputs.run(engine.context)
  const [task] = await claimCommands(run)
  await putOut(run, task!, { 'scan.txt': 'S' })
  await engine.succeed(task!.id, task!.epoch)
  await doFileChores(run)
  const page = await open(`/#/jobs/${id}?tab=files`)
  await page.getByRole('button', { name: `${outbox.uri}scan.txt` }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('Made by').waitFor()
  await dialog.getByRole('button', { name: `${inbox.uri}scan`, exact: true }).click()
  await dialog.getByText('Used by').waitFor()
  await dialog.getByRole('button', { name: `${outbox.uri}scan.txt` }).waitFor()
})

inBrowser('charts reach as far back as is asked for, and that stands in the address', {}, async ({ engine, open }) => {
  await engine.enqueue('mail', null)
  const page = await open('/')
  const asked = page.waitForRequest(/sinceSeconds=86400/)
  await page.getByText('1 d', { exact: true }).click()
  await asked
  assert.match(page.url(), /range=1/)
})

inBrowser(
  'one dead letter is mended and redriven by itself; its trace id can be copied',
  { context: { permissions: ['clipboard-read', 'clipboard-write'] } },
  async ({ engine, open }) => {
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    const ids = await Promise.all([1, 2].map(async n => (await engine.enqueue('mail', n, { retry, traceparent })).id))
    for (const { id, epoch } of await engine.claims({ worker: 'w', queues: ['mail'], claim: 2 })) {
      await engine.fail(id, epoch, { error: { message: 'no such street' } })
    }
    const page = await open(`/#/tasks/${ids[0]}`)
    await page.getByLabel('Copy the trace id').click()
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), '4bf92f3577b34da6a3ce929d0e0e4736')
    await page.getByRole('button', { name: 'Edit and redrive' }).click()
    await page.getByLabel(/New payload/).fill('{"to": "Bob"}')
    await page.getByRole('dialog').getByRole('button', { name: 'Redrive', exact: true }).click()
    await eventually('it waits again', async () => (await engine.task(ids[0]!)).state === 'queued')
    assert.deepEqual((await engine.task(ids[0]!)).payload, { to: 'Bob' })
    assert.equal((await engine.task(ids[1]!)).state, 'dead_lettered')
  },
)

inBrowser(
  'dead letters are redriven at a rate: one after the other, and how far it has come is shown',
  {},
  async run => {
    const { engine, open } = run
    await engine.enqueueMany([1, 2, 3].map(payload => ({ type: 'mail', payload, retry })))
    for (const { id, epoch } of await engine.claims({ worker: 'w', queues: ['mail'], claim: 3 })) {
      await engine.fail(id, epoch, { error: { message: 'no host' } })
    }
    const page = await open('/#/dead-letters')
    await page.getByRole('button', { name: 'Redrive …' }).click()
    await page.getByLabel(/Maximum rate per second/).fill('0.01')
    await page.getByRole('dialog').getByRole('button', { name: 'Redrive', exact: true }).click()
    await page.getByText(/Redrive done: 3 of 3/).waitFor()
    const { items } = await engine.tasks({ order: 'oldest' })
    const [first, second, third] = items.map(({ runAt }) => Date.parse(runAt) / 1000)
    assert.deepEqual([Math.round(second! - first!), Math.round(third! - second!)], [100, 100])
  },
)
