/** The page of the HTTP API, made from the same registry as the OpenAPI document. */
import { problems } from '../kernel/problem.ts'
import { permissions, type Role, roles } from '../kernel/role.ts'
import { type OperationEntry, takesKey } from '../protocol/operation.ts'
import { namedOperations } from '../protocol/operations.ts'
import type { Fields, Schema } from '../schema/check.ts'
import { escapeHtml, htmlPage } from './html-page.ts'

export function apiPage(): string {
  const links = '<a href="../docs">Documentation</a>'
  return htmlPage(
    'The HTTP API',
    links,
    `<h1>The HTTP API</h1>
<p>For machines: <a href="../openapi.json">openapi.json</a>. Bodies and answers are JSON; errors are problems (RFC 9457)
with one of the <a href="#problems">codes</a> below. Lists are <code>{ items, next }</code>: send <code>next</code> as
<code>cursor</code> to get the next page. A request whose row names the <code>Idempotency-Key</code> accepts one: sent again
within 24 hours, it gets its first answer again and has no second effect. A claim gets the same tasks again, as far as they
are still held; the key of a claim that got no task is free again. Reports of workers need no key, because their epoch
identifies repeats. Send an API key as <code>Authorization: Bearer pawl_…</code>.</p>
${operationSections()}
<h2>Roles</h2>
${table(['role', 'may'], (Object.keys(roles) as Role[]).map(roleRow))}
<h2 id="problems">Problems</h2>
${table(['code', 'status', 'means', 'what to do'], Object.entries(problems).map(problemRow))}`,
  )
}

function operationSections(): string {
  const groups = new Map<string, string[]>()
  for (const [name, operation] of namedOperations) {
    const noun = operation.path.split('/')[2]!
    groups.set(noun, [...(groups.get(noun) ?? []), operationRow(name, operation)])
  }
  return [...groups].map(([noun, rows]) => `<h2>${noun}</h2>\n${table(['', 'does', 'takes'], rows)}`).join('\n')
}

function operationRow(name: string, operation: OperationEntry): string {
  const { method, path, summary, permission, query, body, list, spec } = operation
  const takes = [
    ...(spec === undefined ? [] : [spec === 'job' ? 'a job spec' : 'a list of stages']),
    ...(list === undefined ? [] : [`a list of { ${namesIn(propertiesOf(list))} }`]),
    ...(query === undefined ? [] : [`?${namesIn(query)}`]),
    ...(body === undefined ? [] : [`{ ${namesIn(body)} }`]),
    ...(takesKey(operation) ? ['Idempotency-Key'] : []),
  ]
  const cells = [
    `<code>${method} ${escapeHtml(path)}</code>`,
    `${escapeHtml(summary)} <small>${permission}</small>`,
    takes.map(text => `<code>${escapeHtml(text)}</code>`).join('<br>'),
  ]
  return `<tr id="${name}">${cells.map(cell => `<td>${cell}</td>`).join('')}</tr>`
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
  return `<tr id="${code}"><td><code>${code}</code></td><td>${status}</td><td>${escapeHtml(means)}</td><td>${escapeHtml(hint)}</td></tr>`
}

function table(heads: readonly string[], rows: readonly string[]): string {
  return `<table><tr>${heads.map(head => `<th>${head}</th>`).join('')}</tr>\n${rows.join('\n')}</table>`
}
