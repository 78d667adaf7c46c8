/** Pictures of the dashboard for docs/: `npm run pictures`. A browser looks at a server that has something to show. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Browser, chromium } from 'playwright-core'
import { startBabysitter } from '../src/babysitter/babysitter.ts'
import { type Engine, openEngine } from '../src/engine/engine.ts'
import { startServer } from '../src/server/server.ts'
import { defineTask } from '../src/worker/define-task.ts'
import { startWorker } from '../src/worker/worker.ts'
import { findRoot } from './job-schema-page.ts'

const folder = join(findRoot(import.meta.dirname), 'docs/pictures')
const themes = {
  light: { colorScheme: 'light', viewport: { width: 1280, height: 860 } },
  dark: { colorScheme: 'dark', viewport: { width: 1280, height: 860 } },
  phone: { colorScheme: 'light', viewport: { width: 390, height: 844 } },
} as const

/** With a stack that is the same wherever this runs. */
function failure(message: string, where: string): Error {
  return Object.assign(new Error(message), { stack: `Error: ${message}\n    at ${where} (tasks.ts:12:11)` })
}

const tasks = [
  defineTask({
    type: 'extract',
    retry: { delaySeconds: 0.3 },
    handler: async (payload: unknown, ctx) => {
      const { page } = payload as { page: number }
      ctx.log.info('reading', { page })
      await sleep(150 + ((page * 137) % 500))
      if (page % 5 === 3 && ctx.attempt === 1) throw failure(`page ${page} is smudged`, 'extract')
      return { words: page * 10 }
    },
  }),
  defineTask({ type: 'classify', handler: async () => sleep(400) }),
  defineTask({
    type: 'send',
    retry: { attempts: 1 },
    handler: async (payload: unknown) => {
      throw failure(`letter ${(payload as { n: number }).n} was returned: no such address`, 'send')
    },
  }),
]

async function fill(engine: Engine) {
  const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)
  const invoices = await engine.submit({
    name: 'invoices',
    priority: 10,
    input: { month: '2026-10' },
    stages: [
      { name: 'extract', task: 'extract', payloads: numbers(18).map(page => ({ page })) },
      { name: 'classify', task: 'classify' },
      { name: 'thumbnails', task: 'classify', needs: ['extract'] },
      { name: 'review', gate: { approvers: 1, ask: 'Are the totals right?' }, needs: ['classify', 'thumbnails'] },
      { name: 'publish', task: 'publish', needs: ['review'] },
    ],
  })
  const letters = await engine.submit({
    name: 'newsletter',
    stages: [
      { name: 'render', task: 'classify', payloads: numbers(3) },
      { name: 'send', task: 'send', failFast: false, payloads: numbers(5).map(n => ({ n })) },
    ],
  })
  const census = await engine.submit({
    name: 'census',
    stages: [{ name: 'count', task: 'count', payloads: numbers(100_000) }],
  })
  await sleep(70_000)
  const [dead] = (await engine.deadLetters()).items
  return {
    overview: '/',
    jobs: '/#/jobs',
    job: `/#/jobs/${invoices.id}`,
    timeline: `/#/jobs/${invoices.id}?tab=timeline`,
    failed: `/#/jobs/${letters.id}`,
    stage: `/#/stages/${census.stages[0]!.id}`,
    task: `/#/tasks/${dead!.id}`,
    gates: '/#/gates',
    'dead-letters': '/#/dead-letters',
  }
}

async function take(browser: Browser, url: string, pages: Readonly<Record<string, string>>): Promise<void> {
  for (const [theme, options] of Object.entries(themes)) {
    const context = await browser.newContext(options)
    for (const [name, path] of Object.entries(pages)) {
      const page = await context.newPage()
      await page.goto(`${url}${path}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      if (name === 'overview') await page.locator('canvas').nth(3).waitFor()
      await sleep(1500)
      await page.screenshot({ path: join(folder, `${name}-${theme}.png`) })
      await page.close()
    }
    await context.close()
  }
}

mkdirSync(folder, { recursive: true })
const engine = await openEngine({})
const server = await startServer(engine, { port: 0 })
const babysitter = startBabysitter(engine)
const workers = ['ada', 'grace'].map(name => startWorker(engine, tasks, { name, concurrency: 4 }))
const browser = await chromium.launch({
  executablePath: process.env.PAWL_BROWSER ?? '/usr/bin/chromium',
  args: ['--no-sandbox'],
})
await take(browser, server.url, { empty: '/' })
await take(browser, server.url, await fill(engine))
await browser.close()
for (const worker of workers) await worker.stop()
await babysitter.stop()
await server.close()
await engine.close()
