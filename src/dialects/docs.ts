/** Documents the routes of a dialect: as an OpenAPI document, and as an HTML page without scripts and requests. */
import type { Schema } from '../schema/check.ts'
import { type Answer, type Dialect, type DialectRoute, neededFor } from './dialect.ts'

type Documented = Pick<Dialect, 'system' | 'routes' | 'faults' | 'secretIn' | 'keyHeader'>

/** `root`: where the dialect is served. */
export function openApiOf(dialect: Documented, root: string): Schema {
  const paths: Record<string, Record<string, Schema>> = {}
  for (const route of dialect.routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operationOf(route, dialect.faults) }
  }
  const securitySchemes = schemesOf(dialect)
  return {
    openapi: '3.1.0',
    info: { title: `${dialect.system}, as Pawl serves it`, version: '1' },
    servers: [{ url: root === '' ? '/' : root }],
    security: [...Object.keys(securitySchemes).map(name => ({ [name]: [] })), {}],
    paths,
    components: { securitySchemes },
  }
}

/** How its clients send a key. */
function schemesOf({ secretIn, keyHeader }: Documented): Readonly<Record<string, Schema>> {
  return {
    key: { type: 'http', scheme: secretIn === undefined ? 'bearer' : 'basic' },
    ...(keyHeader !== undefined && { keyHeader: { type: 'apiKey', in: 'header', name: keyHeader } }),
  }
}

function operationOf(route: DialectRoute, faults: Schema): Schema {
  const { path, summary, takes, answers, needs, query = [], mediaType } = route
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
  // A stream has no schema. Its documentation says that it is text.
  const answer = answers ?? (mediaType === undefined ? null : { type: 'string' })
  const inQuery = query.map(name => ({ name, in: 'query', schema: { type: 'string' } }))
  return {
    operationId: operationIdOf(route),
    summary,
    description: `Needs ${permissionOf(route)}.`,
    ...(needs === null && { security: [] }),
    parameters: [...inPath, ...inQuery],
    ...(takes !== undefined && { requestBody: { required: true, content: contentOf(takes) } }),
    responses: {
      [goodStatus(route)]: { description: summary, ...(answer !== null && { content: contentOf(answer, mediaType) }) },
      default: { description: 'The request was refused.', content: contentOf(faults) },
    },
  }
}

/** The status of a successful answer. */
export function goodStatus({ status, answers, mediaType }: DialectRoute): number {
  return status ?? (answers === null && mediaType === undefined ? 204 : 200)
}

/** For example `postJobsIdStart`. */
function operationIdOf({ method, path }: DialectRoute): string {
  const words = path.match(/[A-Za-z0-9]+/g) ?? ['root']
  return method.toLowerCase() + words.map(word => word[0]!.toUpperCase() + word.slice(1)).join('')
}

function contentOf(schema: Schema, mediaType = schema.type === 'string' ? 'text/plain' : 'application/json'): Schema {
  return { [mediaType]: { schema: typed(schema) } }
}

/** The schema with a type beside every `const` and `enum`, because client generators drop operations without. */
function typed<Value>(schema: Value): Value {
  if (Array.isArray(schema)) return schema.map(typed) as Value
  if (typeof schema !== 'object' || schema === null) return schema
  const inner = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, typed(value)]))
  const [sample] = 'const' in inner ? [inner.const] : Array.isArray(inner.enum) ? inner.enum : []
  const type = typeof sample === 'number' ? 'integer' : typeof sample
  const isWanted = inner.type === undefined && ['string', 'boolean', 'integer'].includes(type)
  return (isWanted ? { type, ...inner } : inner) as Value
}

/** `link`: the address of the OpenAPI document. */
export function docsPage({ system, routes }: Documented, link: string): Answer {
  const rows = routes.map(route => {
    const { method, path, summary } = route
    const cells = [`<code>${method} ${escaped(path)}</code>`, escaped(summary), permissionOf(route)]
    return `<tr>${cells.map(cell => `<td>${cell}</td>`).join('')}</tr>`
  })
  const body = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>${system}, as Pawl serves it</title>
<h1>${system}, as Pawl serves it</h1>
<p>For machines: <a href="${escaped(link)}">OpenAPI</a>.</p>
<table><tr><th>route</th><th>does</th><th>needs</th></tr>
${rows.join('\n')}
</table>
</html>
`
  const policy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
  return {
    status: 200,
    headers: { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy },
    body,
  }
}

const permissionOf = (route: DialectRoute) =>
  route.needs === null ? neededFor(route) : `the permission ${neededFor(route)}`

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
