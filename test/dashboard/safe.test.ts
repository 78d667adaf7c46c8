/** Foreign content is shown as visible text and never runs. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { inBrowser } from './browser.ts'

const markup = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
const escapes = '\u001b[2J\u001b]0;gone\u0007\u202Eright to left'

inBrowser(
  'markup and terminal escapes in names, payloads, errors and logs are shown as text',
  {},
  async ({ engine, page, server }) => {
    const odd = markup + escapes
    const { id, stages } = await engine.submit({
      name: odd,
      stages: [{ name: odd, task: odd, payloads: [{ markup, escapes }], retry: { attempts: 1 } }],
    })
    const [claimed] = await engine.claims({ worker: `w${odd.slice(0, 40)}`, queues: [odd], start: true })
    await engine.sync({
      worker: 'w',
      beats: [{ id: claimed!.id, epoch: claimed!.epoch, logs: [{ n: 1, message: markup + escapes }] }],
    })
    await engine.fail(claimed!.id, claimed!.epoch, {
      error: { message: markup + escapes, stack: `${markup}\n${escapes}` },
    })
    for (const path of [
      '/',
      '/#/jobs',
      `/#/jobs/${id}`,
      ...['timeline', 'events', 'data'].map(tab => `/#/jobs/${id}?tab=${tab}`),
      `/#/stages/${stages[0]!.id}`,
      `/#/tasks/${claimed!.id}`,
      '/#/dead-letters',
    ]) {
      await page.goto(`${server.url}${path}`)
      await page.reload()
      await page.getByText('<img src=x').first().waitFor()
      assert.deepEqual(await hiddenIn(page), [], path)
    }
    await page.goto(`${server.url}/#/tasks/${claimed!.id}`)
    await page.getByRole('tab', { name: 'logs' }).click()
    await page.getByLabel('Logs').getByText('<script>').waitFor()
    assert.equal(await page.evaluate('window.hacked'), undefined)
    assert.deepEqual(await hiddenIn(page), [])
  },
)

/** Finds control characters in the text, the accessible names and the title of the tab. */
async function hiddenIn(page: Page): Promise<string[]> {
  const shown = (await page.evaluate(`[document.title, document.body.innerText,
    ...[...document.querySelectorAll('[title],[aria-label]')].map(one => one.title + one.ariaLabel)].join()`)) as string
  return ['\u001b', '\u0007', '\u202e'].filter(one => shown.includes(one))
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface Finding {
  readonly id: string
  readonly impact: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
}

const themes: Readonly<Record<string, BrowserContextOptions>> = {
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  'on a phone': { colorScheme: 'light', viewport: { width: 390, height: 844 } },
}

for (const [theme, context] of Object.entries(themes)) {
  inBrowser(
    `no page has a serious fault for people who read by other means, nor is wider than its window (${theme})`,
    { context: { ...context, bypassCSP: true } },
    async ({ engine, page, server }) => {
      const { id, stages } = await engine.submit({
        name: 'invoices',
        stages: [
          {
            name: 'extract',
            task: 'extract',
            payloads: [1, 2],
            retry: { attempts: 1 },
            tolerate: { count: 2 },
            failFast: false,
          },
          { name: 'review', gate: { approvers: 1, ask: 'Are the totals right?' } },
        ],
      })
      const [bad, good] = await engine.claims({ worker: 'w', queues: ['extract'], claim: 2, start: true })
      await engine.fail(bad!.id, bad!.epoch, { error: { message: 'no' } })
      await engine.succeed(good!.id, good!.epoch)
      const paths = [
        '/',
        '/#/jobs',
        `/#/jobs/${id}`,
        ...['timeline', 'events', 'files', 'data'].map(tab => `/#/jobs/${id}?tab=${tab}`),
        `/#/stages/${stages[0]!.id}`,
        `/#/tasks/${bad!.id}`,
        '/#/gates',
        '/#/dead-letters',
      ]
      for (const path of paths) {
        await page.goto(`${server.url}${path}`)
        await page.reload()
        await page.getByRole('heading', { level: 1 }).waitFor()
        await page.waitForFunction('document.getAnimations().length === 0')
        await page.evaluate(axe)
        const { violations } = (await page.evaluate('axe.run()')) as { violations: Finding[] }
        const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
        const summary = serious.map(({ id, nodes }) => [id, nodes[0]!.html, nodes[0]!.failureSummary])
        assert.deepEqual(summary, [], path)
        const wide = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'
        assert.equal(await page.evaluate(wide), false, `${path} is wider than its window`)
      }
    },
  )
}
