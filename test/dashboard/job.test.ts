/** The page of a job: stages, timeline, why it ended, and its buttons. */
import assert from 'node:assert/strict'
import { inBrowser } from './browser.ts'

inBrowser(
  'a failed job says why in a sentence, with how many tasks failed and of what',
  {},
  async ({ engine, open }) => {
    const { id } = await engine.submit({
      name: 'newsletter',
      stages: [{ name: 'send', task: 'send', payloads: [1, 2, 3], failFast: false, retry: { attempts: 1 } }],
    })
    const claimed = await engine.claims({ worker: 'w', queues: ['send'], claim: 3 })
    for (const { id, epoch } of claimed)
      await engine.fail(id, epoch, { error: { message: `letter ${epoch} was returned` } })
    const page = await open(`/#/jobs/${id}`)
    const why =
      'The job failed because stage send failed: 3 of 3 tasks exhausted their retries: 3 × “letter # was returned”.'
    await page.getByText(why).waitFor()
  },
)

inBrowser(
  'a job is paused, resumed and cancelled by its buttons, and only those that its state allows are offered',
  {},
  async ({ engine, open }) => {
    const { id } = await engine.submit({ name: 'invoices', stages: [{ name: 'extract', task: 'extract' }] })
    const page = await open(`/#/jobs/${id}`)
    const button = (name: string) => page.getByRole('button', { name, exact: true }).first()
    await button('Pause').click()
    await button('Resume').click()
    await button('Pause').waitFor()
    assert.equal((await engine.job(id)).state, 'pending')
    await button('Cancel').click()
    await page.getByLabel('Reason (recorded in the events)').fill('ordered twice')
    await page.getByRole('button', { name: 'Yes' }).click()
    await page.getByText('The job was cancelled: ordered twice.').waitFor()
    assert.equal(await button('Pause').count(), 0)
    await button('Retry').waitFor()
  },
)

inBrowser(
  'the timeline shows each attempt and who lost it, also to a finger and to a reader',
  {},
  async ({ engine, advance, open }) => {
    const { id } = await engine.submit({
      name: 'invoices',
      stages: [{ name: 'extract', task: 'extract', retry: { delaySeconds: 0 } }],
    })
    const [first] = await engine.claims({ worker: 'ada', queues: ['extract'], start: true })
    await advance(5)
    await engine.fail(first!.id, first!.epoch, { error: { message: 'the pen ran dry' } })
    const [second] = await engine.claims({ worker: 'bob', queues: ['extract'], start: true })
    await engine.succeed(second!.id, second!.epoch)
    const page = await open(`/#/jobs/${id}?tab=timeline`)
    await page
      .getByTitle(/attempt 1 by ada: retrying/)
      .first()
      .waitFor()
    await page
      .getByRole('button', { name: /attempt 2 by bob: succeeded/ })
      .last()
      .click()
    await page.getByRole('status').getByText('attempt 2 by bob: succeeded').waitFor()
    await page.getByRole('link', { name: 'Jobs' }).click()
    await page.getByRole('heading', { name: 'Jobs' }).waitFor()
    const focused = await page.evaluate('document.activeElement?.textContent')
    assert.equal(focused, 'Jobs', 'the page that one comes to is read out')
  },
)

inBrowser(
  'in the timeline what has ended stops, and what waits lasts until now',
  {},
  async ({ engine, advance, open }) => {
    await advance(-600)
    const { id } = await engine.submit({
      name: 'invoices',
      stages: [
        { name: 'extract', task: 'extract' },
        { name: 'review', gate: true },
      ],
    })
    const [claimed] = await engine.claims({ worker: 'ada', queues: ['extract'], start: true })
    await engine.succeed(claimed!.id, claimed!.epoch)
    await advance(600)
    const page = await open(`/#/jobs/${id}?tab=timeline`)
    const share = async (title: string) => {
      const [bar, track] = await Promise.all([
        page.getByTitle(title, { exact: true }).last().boundingBox(),
        page.locator('.timeline-track').first().boundingBox(),
      ])
      return bar!.width / track!.width
    }
    await page.getByTitle('waiting', { exact: true }).waitFor()
    assert.ok((await share('waiting')) > 0.9)
    assert.ok((await share('extract: running')) < 0.1)
    assert.equal(await page.locator('.timeline-bar[title="succeeded"]').count(), 0)
  },
)

inBrowser('what stands below the graph of a job stays in place when the graph is loaded', {}, async run => {
  const { engine, page, server } = run
  const { id } = await engine.submit({
    name: 'fan',
    stages: [
      { name: 'split', task: 'split' },
      { name: 'left', task: 'left', needs: ['split'] },
      { name: 'right', task: 'right', needs: ['split'] },
    ],
  })
  let load = () => {}
  const isLookedAt = new Promise<void>(resolve => {
    load = resolve
  })
  await page.route('**/graph-*.js', async route => {
    await isLookedAt
    await route.continue()
  })
  await page.goto(`${server.url}/#/jobs/${id}`)
  const below = page.getByRole('tab', { name: 'files' })
  const { y } = (await below.boundingBox())!
  load()
  await page.getByLabel('Stages of the job').getByText('left').waitFor()
  assert.equal((await below.boundingBox())!.y, y)
})
