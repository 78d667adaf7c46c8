/** The dashboard loads completely, and only from its own server. */
import assert from 'node:assert/strict'
import { eventually } from '../harness/eventually.ts'
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

inBrowser(
  'several jobs are cancelled at once, and those that have ended are left alone',
  {},
  async ({ engine, open }) => {
    const [one, two] = [await engine.submit(spec), await engine.submit(spec)]
    const { id: ended } = await engine.submit({ name: 'empty', stages: [{ name: 'nothing', task: 'a', payloads: [] }] })
    const page = await open('/#/jobs')
    await page.getByRole('checkbox').nth(3).waitFor()
    await page.getByLabel('Select all on this page').check()
    await page.getByRole('button', { name: 'Cancel 2' }).click()
    await page.getByRole('button', { name: 'Yes' }).click()
    await page.getByText('cancelled').nth(1).waitFor()
    const states = await Promise.all([one.id, two.id, ended].map(async id => (await engine.job(id)).state))
    assert.deepEqual(states, ['cancelled', 'cancelled', 'succeeded'])
  },
)

inBrowser('what is looked for stands in the address', {}, async ({ engine, open }) => {
  await engine.submit(spec)
  await engine.submit({ ...spec, name: 'letters' })
  const page = await open('/#/jobs')
  await page.getByLabel('Search').fill('ETTER')
  await page.getByRole('link', { name: 'invoices' }).waitFor({ state: 'detached' })
  await page.getByText('1 job', { exact: true }).waitFor()
  assert.match(page.url(), /#\/jobs\?search=ETTER$/)
  await page.reload()
  await page.getByRole('link', { name: 'letters', exact: true }).waitFor()
  assert.equal(await page.getByRole('link', { name: 'invoices' }).count(), 0)
})

inBrowser('jobs are sorted by a click on the head of a column, and that stands in the address', {}, async run => {
  for (const [name, priority] of [
    ['b', 1],
    ['c', 3],
    ['a', 2],
  ] as const) {
    await run.engine.submit({ ...spec, name, priority })
  }
  const page = await run.open('/#/jobs')
  const sorted = async (by: string, wanted: string) => {
    await page.getByRole('button', { name: by }).click()
    await eventually(`sorted by ${by}`, async () => {
      const names = await page.locator('tbody a').allInnerTexts()
      return names.join('') === wanted
    })
  }
  await sorted('Name', 'abc')
  assert.match(page.url(), /order=name/)
  await sorted('Priority', 'cab')
  await sorted('Submitted', 'acb')
  await sorted('Submitted', 'bca')
})

inBrowser(
  'under another path, with or without its last slash, the page is whole and its links stay there',
  { server: { rootDialect: 'jobnik' } },
  async ({ engine, page, server }) => {
    const { id } = await engine.submit(spec)
    assert.match(server.url, /\/pawl$/)
    await page.getByRole('link', { name: 'Jobs' }).click()
    await page.getByRole('link', { name: 'invoices' }).click()
    await page.locator('.react-flow__node', { hasText: 'extract' }).waitFor()
    assert.equal(page.url(), `${server.url}/#/jobs/${id}`)
    await page.goto(`${server.url.replace(/\/pawl$/, '')}/pawl#/jobs`)
    await page.getByRole('link', { name: 'invoices' }).waitFor()
  },
)

inBrowser('under the pointer nothing moves: a new job waits until it is asked for', {}, async ({ engine, open }) => {
  await engine.submit(spec)
  const page = await open('/#/jobs')
  await page.getByRole('link', { name: 'invoices' }).hover()
  await engine.submit({ ...spec, name: 'letters' })
  await page.getByRole('button', { name: /^Show/ }).waitFor()
  assert.equal(await page.getByRole('link', { name: 'letters', exact: true }).count(), 0)
  await page.getByRole('heading', { name: 'Jobs' }).hover()
  await page.getByRole('link', { name: 'letters', exact: true }).waitFor()
})
