import { existsSync } from 'node:fs'
import { type Browser, chromium, type Page } from 'playwright-core'
import type { Measure } from '../contender.ts'
import { table, whole } from '../markdown.ts'
import { openOwnStore } from '../own-store.ts'
import { startServerProcess } from '../processes.ts'
import { median } from '../statistics.ts'

const program = process.env.PAWL_BROWSER ?? '/usr/bin/chromium'
const tasks = 100_000
const scrollSeconds = 5

/** Defined in the browser, in which functions passed to `evaluate` run. */
declare const requestAnimationFrame: (step: (now: number) => void) => void

/** How soon the dashboard is usable, and how smoothly it scrolls through a stage of 100,000 tasks. In a real browser. */
export const measure: Measure = {
  name: 'dashboard',
  async run({ cluster, quick }) {
    const title = 'The dashboard in a browser'
    if (!existsSync(program)) return { title, markdown: 'There is no browser here.\n' }
    const store = await openOwnStore(cluster, 'dashboard')
    await using server = await startServerProcess(store.url)
    const browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox'] })
    try {
      const { url } = server
      const payloads = Array.from({ length: tasks }, (_, n) => n)
      const { stages } = await store.engine.submit({
        name: 'census',
        stages: [{ name: 'count', task: 'count', payloads }],
      })
      const rounds = quick ? 1 : 5
      const loads: number[] = []
      for (let round = 0; round < rounds; round++) loads.push(await loadMs(browser, url))
      const page = await browser.newPage()
      await page.goto(`${url}/#/stages/${stages[0]!.id}`)
      await page.getByLabel('Tasks', { exact: true }).waitFor()
      const { frames, longestMs } = await scroll(page)
      const load = median(loads)
      const rows = [
        ['first load until the overview can be used, median', `${whole(load)} ms`],
        [`frames a second while scrolling ${whole(tasks)} tasks`, frames.toFixed(1)],
        ['the longest time between two frames', `${longestMs.toFixed(0)} ms`],
      ]
      return {
        title,
        markdown: `${table(['', ''], rows)}\n`,
        figures: [{ name: 'dashboard.load', value: load, unit: 'ms', better: 'lower' }],
      }
    } finally {
      await browser.close()
      await server.stop()
      await store.close()
    }
  },
}

/** With an empty cache: from the first request until the main content can be read and clicked. */
async function loadMs(browser: Browser, url: string): Promise<number> {
  const context = await browser.newContext()
  const page = await context.newPage()
  // Since the address was entered, by the page's own clock.
  await page.addInitScript(`new MutationObserver(() => {
    if (document.querySelector('nav a') && document.querySelector('h1')) globalThis.usableMs ??= performance.now()
  }).observe(document, { childList: true, subtree: true })`)
  await page.goto(url)
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  const took = (await page.evaluate('usableMs')) as number
  await context.close()
  return took
}

/** Scrolls a hundred rows a second for some seconds. */
function scroll(page: Page): Promise<{ frames: number; longestMs: number }> {
  return page.getByLabel('Tasks', { exact: true }).evaluate(
    (list, seconds) =>
      new Promise(resolve => {
        const began = performance.now()
        let [last, frames, longestMs] = [began, 0, 0]
        const step = (now: number) => {
          frames += 1
          longestMs = Math.max(longestMs, now - last)
          last = now
          list.scrollTop = ((now - began) / 1000) * 3800
          if (now - began < seconds * 1000) requestAnimationFrame(step)
          else resolve({ frames: (frames / (now - began)) * 1000, longestMs })
        }
        requestAnimationFrame(step)
      }),
    scrollSeconds,
  )
}
