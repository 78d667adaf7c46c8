/**
 * The dashboard: one page and what it is made of, built ahead and read once. It asks nothing of anybody but this server,
 * and a browser that shows it runs nothing and loads nothing that did not come from here.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'

const kinds: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

/** Compiled code lies in dist/server, tests run from elsewhere: both find what was built. */
const folders = ['../dashboard', '../../../dist/dashboard'].map(path => fileURLToPath(new URL(path, import.meta.url)))

const policyFor = (nonce: string) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    // Of the style sheets that the kit writes at run time, only those with this page's own number count.
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')

export function bindDashboard(app: FastifyInstance): void {
  const folder = folders.find(path => existsSync(join(path, 'index.html')))
  if (folder === undefined) return
  const page = readFileSync(join(folder, 'index.html'), 'utf8')
  app.get('/', (request, reply) => {
    // What the page is made of lies beside it, and beside a path without its last / lies something else.
    const [path] = request.url.split('?')
    if (!path!.endsWith('/')) return reply.redirect(`${path!.split('/').at(-1)}/`, 308)
    const nonce = randomBytes(16).toString('base64')
    return reply
      .type(kinds['.html']!)
      .header('content-security-policy', policyFor(nonce))
      .header('cache-control', 'no-store')
      .header('referrer-policy', 'no-referrer')
      .send(page.replaceAll('__NONCE__', nonce))
  })
  for (const name of readdirSync(join(folder, 'assets'))) {
    const bytes = readFileSync(join(folder, 'assets', name))
    const kind = kinds[extname(name)] ?? 'application/octet-stream'
    // Its name holds a digest of what it is, so it never changes.
    let packed: Buffer | undefined
    app.get(`/assets/${name}`, (request, reply) => {
      reply.type(kind).header('cache-control', 'public, max-age=31536000, immutable').header('vary', 'accept-encoding')
      if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(bytes)
      packed ??= gzipSync(bytes)
      return reply.header('content-encoding', 'gzip').send(packed)
    })
  }
}
