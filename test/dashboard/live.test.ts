/** The page stays up to date after a lost connection, while a worker dies, and with very many tasks. */
import assert from 'node:assert/strict'
import { gzipSync } from 'node:zlib'
import type { Response } from 'playwright-core'
import { startBabysitter } from '../../src/babysitter/babysitter.ts'
import { startServer } from '../../src/server/server.ts'
import { eventually } from '../harness/eventually.ts'
import { inBrowser } from './browser.ts'

inBrowser(
  'a worker that dies is seen: the lost attempt, the next one, and the end',
  {},
  async ({ engine, advance, open }, t) => {
    const babysitter = startBabysitter(engine)
    t.after(() => babysitter.stop())
    const { id } = await engine.submit({
      name: 'invoices',
      stages: [{ name: 'extract', task: 'extract', retry: { delaySeconds: 0 } }],
    })
    const [first] = await engine.claims({ worker: 'doomed', queues: ['extract'], start: true })
    const page = await open(`/#/tasks/${first!.id}`)
    await page.getByText('by doomed').waitFor()
    // The babysitter waits first if it could not read the leases for a long time.
    await advance(60)
    await page.getByText('retrying').first().waitFor({ timeout: 600_000 })
    const [second] = await engine.claims({ worker: 'heir', queues: ['extract'], start: true, waitSeconds: 30 })
    await page.getByText('by heir').waitFor()
    await engine.succeed(second!.id, second!.epoch)
    await page.getByText('succeeded').first().waitFor()
    await page.goto(`${page.url().split('#')[0]}#/jobs/${id}?tab=timeline`)
    await page
      .getByTitle(/attempt 1 by doomed: retrying/)
      .first()
      .waitFor()
  },
)

inBrowser('counts rise while a stage goes on, on the pages of the job and of the stage', {}, async run => {
  const { engine, open } = run
  const { id, stages } = await engine.submit({
    name: 'census',
    stages: [{ name: 'count', task: 'count', payloads: [1, 2, 3] }],
  })
  const pages = [await open(`/#/jobs/${id}`), await open(`/#/stages/${stages[0]!.id}`), await open('/#/jobs')]
  for (const done of ['1/3', '2/3']) {
    const [claimed] = await engine.claims({ worker: 'w', queues: ['count'], start: true })
    await engine.succeed(claimed!.id, claimed!.epoch)
    for (const page of pages) await page.getByText(done).first().waitFor()
  }
  await pages[1]!.getByText('succeeded 2').waitFor()
})

inBrowser(
  'a connection that is cut is shown and healed, and what happened meanwhile is there',
  { expects: /ERR_|Failed to load/ },
  async ({ engine, server, open }, t) => {
    const { id } = await engine.submit({ name: 'invoices', stages: [{ name: 'extract', task: 'extract' }] })
    const page = await open(`/#/jobs/${id}`)
    await page.getByText('live', { exact: true }).waitFor()
    await server.close()
    await page.getByText('connection lost').waitFor({ timeout: 600_000 })
    const [claimed] = await engine.claims({ worker: 'w', queues: ['extract'], start: true })
    await engine.succeed(claimed!.id, claimed!.epoch)
    const again = await startServer(engine, { port: Number(new URL(server.url).port) })
    t.after(() => again.close())
    await page.getByText('live', { exact: true }).waitFor({ timeout: 600_000 })
    await page.locator('.react-flow__node', { hasText: 'extract' }).getByText('succeeded').waitFor()
  },
)

inBrowser(
  'a page whose parts could not be loaded while the server was away comes by itself when it is back',
  { expects: /ERR_|Failed to load/ },
  async ({ engine, server, page }, t) => {
    await engine.submit({ name: 'invoices', stages: [{ name: 'extract', task: 'extract' }] })
    await page.getByText('live', { exact: true }).waitFor()
    await server.close()
    await page.getByText('connection lost').waitFor({ timeout: 600_000 })
    await page.getByRole('link', { name: 'Jobs' }).click()
    await page.getByText('This part cannot be shown').waitFor()
    const again = await startServer(engine, { port: Number(new URL(server.url).port) })
    t.after(() => again.close())
    await page.getByRole('link', { name: 'invoices' }).waitFor({ timeout: 600_000 })
  },
)

inBrowser(
  'the feed is cut again and again while much happens: each event is told once, and none is missed',
  { expects: /ERR_|Failed to load/ },
  async ({ engine, server, page }, t) => {
    const spec = { name: 'many', stages: [{ name: 'a', task: 'a' }] }
    await page.getByText('live', { exact: true }).waitFor()
    const from = (await engine.events({ latest: 0 })).next
    const options = { port: Number(new URL(server.url).port) }
    let running = server
    t.after(() => running.close())
    for (let round = 0; round < 3; round++) {
      await engine.submit(spec)
      await running.close()
      await page.getByText('connection lost').waitFor({ timeout: 600_000 })
      await engine.submit(spec)
      running = await startServer(engine, options)
      await page.getByText('live', { exact: true }).waitFor({ timeout: 600_000 })
    }
    const wanted = (await engine.events({ cursor: from, limit: 1000 })).items
      .filter(({ entity }) => entity !== 'task')
      .map(({ id }) => id)
    const shown = () => page.locator('[data-event]').evaluateAll(all => all.map(one => one.getAttribute('data-event')))
    await eventually('all of it is shown', async () => (await shown()).length >= wanted.length)
    assert.ok(wanted.length >= 12)
    assert.deepEqual((await shown()).toReversed(), wanted)
  },
)

inBrowser('the first load is small: under 300 kB, packed', {}, async ({ engine, page, server }, t) => {
  await engine.submit({ name: 'invoices', stages: [{ name: 'extract', task: 'extract' }] })
  const context = await page.context().browser()!.newContext()
  t.after(() => context.close())
  const fresh = await context.newPage()
  const responses: Response[] = []
  fresh.on('response', response => {
    if (/^\/(assets\/.*)?$/.test(new URL(response.url()).pathname)) responses.push(response)
  })
  await fresh.goto(server.url)
  await fresh.locator('canvas').first().waitFor()
  const sizes = await Promise.all(responses.map(async response => gzipSync(await response.body()).length))
  const bytes = sizes.reduce((sum, size) => sum + size, 0)
  t.diagnostic(`${bytes} bytes`)
  assert.ok(bytes > 50_000 && bytes < 300_000, `${bytes} bytes`)
})

inBrowser(
  'a stage of 100,000 tasks can be scrolled through, and only what is seen is drawn',
  {},
  async ({ engine, open }) => {
    const payloads = Array.from({ length: 100_000 }, (_, n) => n)
    const { stages } = await engine.submit({ name: 'census', stages: [{ name: 'count', task: 'count', payloads }] })
    const page = await open(`/#/stages/${stages[0]!.id}`)
    await page.getByText('queued 100,000').waitFor()
    const list = page.getByLabel('Tasks', { exact: true })
    for (const row of [0, 300, 50_000, 99_990]) {
      await eventually(`row ${row} is drawn`, async () => {
        await list.evaluate((element, top) => element.scrollTo(0, top), 38 * row)
        return (await list.getByText(String(row), { exact: true }).count()) > 0
      })
      assert.ok((await list.locator('.row').count()) < 60)
    }
  },
)
