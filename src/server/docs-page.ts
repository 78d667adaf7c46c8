/** The API for people: one page, made of the same tables as the OpenAPI document. It asks nothing of anybody. */
import { createHash } from 'node:crypto'
import { problems } from '../kernel/problem.ts'
import { permissions, type Role, roles } from '../kernel/role.ts'
import { type Request, requests } from '../protocol/requests.ts'
import { type Operation, type Route, routes, takesKey } from '../protocol/routes.ts'
import type { Fields, Schema } from '../schema/check.ts'

const style = `
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color-scheme: light dark }
  table { border-collapse: collapse; width: 100% }
  td, th { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8884 }
  code { font-size: .9em; overflow-wrap: anywhere }
  small { opacity: .75 }
  tr:target { background: #fd08 }`

/** Nothing is fetched and nothing runs: its one style sheet is named by its hash. */
export const docsPolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

export function docsPage(): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Pawl: the HTTP API</title>
<style>${style}</style>
<h1>The HTTP API</h1>
<p>For machines: <a href="openapi.json">openapi.json</a>. Bodies and answers are JSON; what goes wrong is a problem
(RFC 9457) with one of the <a href="#problems">codes</a> below. Lists are <code>{ items, next }</code>: send
<code>next</code> as <code>cursor</code> to go on. A request whose row names the <code>Idempotency-Key</code> may carry one:
sent again within 24 hours it has its first answer and no second effect. A claim has the same tasks again, as far as they
are still held; one that won nothing leaves its key free. What a worker reports needs no key, for its epoch tells that
it is sent again. An API key is sent as <code>Authorization: Bearer pawl_…</code>.</p>
${routeSections()}
<h2>Roles</h2>
${table(['role', 'may'], (Object.keys(roles) as Role[]).map(roleRow))}
<h2 id="problems">Problems</h2>
${table(['code', 'status', 'means', 'what to do'], Object.entries(problems).map(problemRow))}
</html>
`
}

function routeSections(): string {
  const groups = new Map<string, string[]>()
  for (const [operation, route] of Object.entries(routes) as [Operation, Route][]) {
    const noun = route.path.split('/')[2]!
    groups.set(noun, [...(groups.get(noun) ?? []), routeRow(operation, route)])
  }
  return [...groups].map(([noun, rows]) => `<h2>${noun}</h2>\n${table(['', 'does', 'takes'], rows)}`).join('\n')
}

function routeRow(operation: Operation, { method, path, says, needs }: Route): string {
  const { query, body, list, spec }: Request = requests[operation]
  const takes = [
    ...(spec === undefined ? [] : [spec === 'job' ? 'a job spec' : 'a list of stages']),
    ...(list === undefined ? [] : [`a list of { ${namesIn(propertiesOf(list))} }`]),
    ...(query === undefined ? [] : [`?${namesIn(query)}`]),
    ...(body === undefined ? [] : [`{ ${namesIn(body)} }`]),
    ...(takesKey(operation) ? ['Idempotency-Key'] : []),
  ]
  const cells = [
    `<code>${method} ${escaped(path)}</code>`,
    `${escaped(says)} <small>${needs}</small>`,
    takes.map(text => `<code>${escaped(text)}</code>`).join('<br>'),
  ]
  return `<tr id="${operation}">${cells.map(cell => `<td>${cell}</td>`).join('')}</tr>`
}

const propertiesOf = (schema: Schema = {}) => (schema.properties ?? {}) as Schema
const namesIn = (fields: Fields | Schema) => Object.keys(fields).join(', ')

function roleRow(role: Role): string {
  return `<tr><td><code>${role}</code></td><td>${roles[role].map(name => permissions[name]).join('; ')}</td></tr>`
}

function problemRow([code, { status, means, hint }]: [
  string,
  { status: number; means: string; hint: string },
]): string {
  return `<tr id="${code}"><td><code>${code}</code></td><td>${status}</td><td>${escaped(means)}</td><td>${escaped(hint)}</td></tr>`
}

function table(heads: readonly string[], rows: readonly string[]): string {
  return `<table><tr>${heads.map(head => `<th>${head}</th>`).join('')}</tr>\n${rows.join('\n')}</table>`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
