/**
 * Serves the documentation below /docs: the pages of the package's folder `docs` as HTML (rendered by
 * scripts/make-docs-pages.mjs when Pawl is built) and as Markdown, and the page of the API.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { apiPage } from './api-page.ts'
import { htmlPage, htmlPolicy } from './html-page.ts'
import { openApi } from './open-api.ts'

const kinds: Readonly<Record<string, string>> = {
  '.md': 'text/markdown; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.yaml': 'text/yaml; charset=utf-8',
  '.sql': 'text/plain; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Relative to compiled code in dist/server, and to tests in build/. */
const find = (...paths: string[]) =>
  paths.map(path => fileURLToPath(new URL(path, import.meta.url))).find(path => existsSync(path))
const folder = find('../../docs', '../../../docs')
const rendered = find('../docs-pages.json', '../../../dist/docs-pages.json')

interface DocsPage {
  readonly title: string
  readonly html: string
}

export function bindDocs(app: FastifyInstance): void {
  const document = JSON.stringify(openApi())
  const api = apiPage()
  app.get('/openapi.json', (_request, reply) => reply.type('application/json').send(document))
  app.get('/docs/api', (_request, reply) => sendHtml(reply, api, false))
  app.get('/docs.md', (_request, reply) => reply.redirect('docs/README.md', 308))
  app.get('/docs', (_request, reply) => sendPage(reply, ''))
  app.get<{ Params: { '*': string } }>('/docs/*', ({ params: { '*': path } }, reply) => {
    if (path === '') return reply.redirect('../docs', 308)
    const kind = kinds[extname(path)]
    if (kind === undefined) return sendPage(reply, path)
    return fileNames().has(path) ? reply.type(kind).send(readFileSync(join(folder!, path))) : reply.callNotFound()
  })
}

function sendPage(reply: FastifyReply, path: string): FastifyReply {
  const page = pages().get(path)
  if (page !== undefined) return sendHtml(reply, framed(path, page), true)
  reply.callNotFound()
  return reply
}

function framed(path: string, { title, html }: DocsPage): string {
  const home = path === '' ? 'docs' : `${'../'.repeat(path.split('/').length)}docs`
  const source = path === '' ? 'docs/README.md' : `${path.split('/').at(-1)}.md`
  const links = [`<a href="${home}">Documentation</a>`, `<a href="${home}/api">HTTP API</a>`]
  return htmlPage(title, [...links, `<a href="${source}">This page as Markdown</a>`].join(' '), html)
}

/** Nothing is read before somebody asks for it. */
const pages = once((): ReadonlyMap<string, DocsPage> => {
  const missing = { title: 'Documentation', html: '<p>The pages are made by <code>npm run build</code>.</p>' }
  return new Map(Object.entries(rendered === undefined ? { '': missing } : JSON.parse(readFileSync(rendered, 'utf8'))))
})
const fileNames = once(() => {
  const names = folder === undefined ? [] : (readdirSync(folder, { recursive: true }) as string[])
  return new Set(names.map(name => name.replaceAll('\\', '/')))
})

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

function sendHtml(reply: FastifyReply, page: string, isWithPictures: boolean): FastifyReply {
  return reply.type('text/html; charset=utf-8').header('content-security-policy', htmlPolicy(isWithPictures)).send(page)
}
