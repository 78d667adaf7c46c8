/** Opens the dashboard of a test's own server in a real browser. Errors on the console of the page fail the test. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { atProcessEnd } from '../harness/process-end.ts'
import { type Served, type ServedOptions, served } from '../harness/served.ts'

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const program = process.env.PAWL_BROWSER ?? places.find(place => existsSync(place))

if (program === undefined) {
  console.error(
    'No browser was found, so the dashboard is not tested: install Debian’s chromium, or name one by PAWL_BROWSER.',
  )
}

let shared: Promise<Browser> | undefined

function sharedBrowser(): Promise<Browser> {
  if (shared !== undefined) return shared
  const opening = chromium.launch({ executablePath: program!, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
  atProcessEnd(async () => (await opening).close())
  shared = opening
  return opening
}

export interface Shown extends Served {
  readonly page: Page
  /** Opens another tab in a browser context of its own. */
  open(path?: string, options?: BrowserContextOptions): Promise<Page>
}

export interface ShowOptions extends ServedOptions {
  readonly path?: string
  readonly context?: BrowserContextOptions
  /** Console errors that the test expects. */
  readonly expects?: RegExp
}

/** A test in a browser. Without a browser it is skipped, and the run says why. */
export function inBrowser(
  title: string,
  options: ShowOptions,
  story: (shown: Shown, t: TestContext) => Promise<void>,
): void {
  test(title, { timeout: 600_000, skip: program === undefined && 'no browser was found' }, async t => {
    const complaints: string[] = []
    const run = await served(t, options)
    const browser = await sharedBrowser()
    const open = async (path = '/', context: BrowserContextOptions = {}) => {
      const opened = await browser.newContext({
        viewport: { width: 1280, height: 900 },
        ...options.context,
        ...context,
      })
      t.after(() => opened.close())
      const page = await opened.newPage()
      page.on('console', message => {
        const text = message.text()
        if (message.type() === 'error' && !options.expects?.test(text)) complaints.push(text)
      })
      page.on('pageerror', error => complaints.push(String(error)))
      await page.goto(`${run.server.url}${path}`)
      return page
    }
    const page = await open(options.path)
    await story({ ...run, page, open }, t)
    assert.deepEqual(complaints, [], 'the page complains')
  })
}
