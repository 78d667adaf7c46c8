/**
 * Serves the dashboard: one prebuilt page and its assets, read once. The page talks only to this server, and its
 * policy lets the browser load and run nothing from elsewhere.
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

/** Relative to compiled code in dist/server, and to tests in build/. */
const folders = ['../dashboard', '../../../dist/dashboard'].map(path => fileURLToPath(new URL(path, import.meta.url)))

const policyFor = (nonce: string) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    // The UI kit adds style sheets at run time. Only those with the nonce of this page apply.
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
    // The assets have relative paths, which need the trailing slash.
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
    // The name contains a digest of the content, so the file never changes.
    let packed: Buffer | undefined
    app.get(`/assets/${name}`, (request, reply) => {
      reply.type(kind).header('cache-control', 'public, max-age=31536000, immutable').header('vary', 'accept-encoding')
      if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(bytes)
      packed ??= gzipSync(bytes)
      return reply.header('content-encoding', 'gzip').send(packed)
    })
  }
}
