/** The routes of a dialect as documentation: an OpenAPI document, and a page that fetches and runs nothing. */
import type { Schema } from '../kernel/check.ts'
import { type Answer, type Dialect, type DialectRoute, neededFor } from './dialect.ts'

type Documented = Pick<Dialect, 'of' | 'routes' | 'faults'>

/** `root`: where the dialect is served. */
export function openApiOf({ of, routes, faults }: Documented, root: string): Schema {
  const paths: Record<string, Record<string, Schema>> = {}
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operationOf(route, faults) }
  }
  return {
    openapi: '3.1.0',
    info: { title: `${of}, as Pawl serves it`, version: '1' },
    servers: [{ url: root === '' ? '/' : root }],
    paths,
  }
}

function operationOf(route: DialectRoute, faults: Schema): Schema {
  const { path, says, takes, answers } = route
  const parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
  const json = (schema: Schema) => ({ 'application/json': { schema } })
  return {
    summary: says,
    description: `Needs ${permissionOf(route)}.`,
    parameters,
    ...(takes !== undefined && { requestBody: { required: true, content: json(takes) } }),
    responses: {
      '2XX': { description: says, ...(answers !== null && { content: json(answers) }) },
      default: { description: 'The request was refused.', content: json(faults) },
    },
  }
}

/** `link`: where the OpenAPI document is. */
export function docsPage({ of, routes }: Documented, link: string): Answer {
  const rows = routes.map(route => {
    const { method, path, says } = route
    const cells = [`<code>${method} ${escaped(path)}</code>`, escaped(says), permissionOf(route)]
    return `<tr>${cells.map(cell => `<td>${cell}</td>`).join('')}</tr>`
  })
  const body = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>${of}, as Pawl serves it</title>
<h1>${of}, as Pawl serves it</h1>
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
