/** The documentation that a server shows. It is rendered by `npm run build`. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { findRoot } from '../../scripts/job-schema-page.ts'
import { served } from '../harness/served.ts'

const docs = join(findRoot(import.meta.dirname), 'docs')
const names = (readdirSync(docs, { recursive: true }) as string[]).filter(name => name.endsWith('.md'))
const pathOf = (name: string) => `/docs/${name.replace(/\.md$/, '')}`.replace('/docs/README', '/docs')

/** Fetches each address once. */
async function reader(t: TestContext) {
  const { server } = await served(t)
  const seen = new Map<string, Promise<{ status: number; text: string }>>()
  const read = async (url: URL) => {
    const response = await fetch(url)
    return { status: response.status, text: await response.text() }
  }
  const get = (url: URL) => {
    const found = seen.get(url.pathname) ?? read(url)
    seen.set(url.pathname, found)
    return found
  }
  return { get, at: (path: string) => new URL(path, server.url) }
}

test('every page of the documentation is shown as HTML, and as the Markdown that it was made from', async t => {
  const { get, at } = await reader(t)
  for (const name of names) {
    const source = readFileSync(join(docs, name), 'utf8')
    const page = await get(at(pathOf(name)))
    assert.equal(page.status, 200, name)
    assert.ok(page.text.includes('</h1>'), name)
    const title = /^# (.+)$/m.exec(source)![1]!
    assert.ok(page.text.includes(`<title>Pawl: ${title}</title>`), `${name} shows ${title}`)
    assert.deepEqual(await get(at(`/docs/${name}`)), { status: 200, text: source })
  }
})

test('every link in the documentation leads to a page and to a heading that exist', async t => {
  const { get, at } = await reader(t)
  for (const name of names) {
    const from = at(pathOf(name))
    const { text } = await get(from)
    for (const [, href] of text.matchAll(/<(?:a href|img src)="([^"]*)"/g)) {
      const url = new URL(href!, from)
      if (url.origin !== from.origin) continue
      const target = await get(url)
      assert.equal(target.status, 200, `${name} links ${href}`)
      const anchor = decodeURIComponent(url.hash.slice(1))
      assert.ok(anchor === '' || target.text.includes(`id="${anchor}"`), `${name} links ${href}`)
    }
  }
})

test('the index of the documentation leads to every page', async t => {
  const { get, at } = await reader(t)
  const { text } = await get(at('/docs'))
  const linked = [...text.matchAll(/<a href="([^"#]*)/g)].map(match => new URL(match[1]!, at('/docs')).pathname)
  assert.deepEqual(
    names.map(pathOf).filter(path => path !== '/docs' && !linked.includes(path)),
    [],
  )
})

test('pages load nothing from elsewhere and run nothing', async t => {
  const run = await served(t)
  for (const path of ['/docs', '/docs/concepts', '/docs/guides/retry-a-flaky-api']) {
    const response = await run.request(path)
    assert.match(
      response.headers.get('content-security-policy')!,
      /^default-src 'none'; style-src 'sha256-[^']+'; img-src 'self'; /,
    )
    assert.doesNotMatch(await response.text(), /<script|<link|<iframe|<img src="https?:|style="/)
  }
})

test('an address below /docs that is no page is not found, and leads to no other file', async t => {
  const run = await served(t)
  for (const path of [
    '/docs/nothing',
    '/docs/nothing.md',
    '/docs/..%2fpackage.json',
    '/docs/guides',
    '/docs/constructor',
  ]) {
    assert.equal((await run.request(path)).status, 404, path)
  }
})
