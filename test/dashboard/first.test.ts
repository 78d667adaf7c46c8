/** The page is there, whole, and asks nobody but its server. */
import assert from 'node:assert/strict'
import { inBrowser } from './browser.ts'

const spec = {
  name: 'invoices',
  stages: [
    { name: 'extract', task: 'extract', payloads: [1, 2, 3] },
    { name: 'review', gate: { approvers: 1 } },
  ],
}

inBrowser('a job is found in the list and shown with its stages, as they change', {}, async ({ page, engine }) => {
  await engine.submit(spec)
  await page.getByRole('link', { name: 'Jobs' }).click()
  await page.getByRole('link', { name: 'invoices' }).click()
  await page.locator('.react-flow__node', { hasText: 'extract' }).waitFor()
  const [claimed] = await engine.claims({ worker: 'w', queues: ['extract'], start: true })
  await page.locator('.react-flow__node', { hasText: 'extract' }).getByText('running').waitFor()
  assert.ok(claimed)
})

inBrowser(
  'the page loads nothing from elsewhere and runs nothing that did not come from its server',
  {},
  async ({ page, request }) => {
    const response = await request('/')
    const policy = response.headers.get('content-security-policy')!
    assert.match(policy, /default-src 'none'/)
    assert.doesNotMatch(policy, /unsafe|\*/)
    const from = new Set<string>()
    page.on('request', asked => from.add(new URL(asked.url()).origin))
    await page.reload()
    await page.getByRole('link', { name: 'Jobs' }).click()
    await page.getByRole('heading', { name: 'Jobs' }).waitFor()
    assert.deepEqual([...from], [new URL(page.url()).origin])
  },
)
