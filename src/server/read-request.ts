/** Makes what came over HTTP what the engine takes; what it then holds the engine checks, as it does in process. */

import { Problem } from '../kernel/problem.ts'
import { requests } from '../protocol/requests.ts'
import { type Given, hasBody, type Operation, type Route, routes } from '../protocol/routes.ts'
import { checkOptions, type Fields, isObject, type Schema } from '../schema/check.ts'

export interface Came {
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string | readonly string[]>>
  readonly body: unknown
}

/** The arguments of the operation, in order. */
export function argumentsOf(operation: Operation, came: Came, call: object): unknown[] {
  const route: Route = routes[operation]
  const body = hasBody(route) ? bodyOf(operation, came) : undefined
  const given: Record<Given, () => unknown> = {
    id: () => came.params.id,
    query: () => queryOf(requests[operation].query ?? {}, came.query, operation),
    body: () => body,
    options: () => ({ ...(body as object), ...call }),
    call: () => call,
    epoch: () => (body as { epoch: number }).epoch,
    said: () => without(body as Record<string, unknown>, ['epoch']),
  }
  if (!route.takes.includes('query')) queryOf({}, came.query, operation)
  return route.takes.map(name => given[name]())
}

function bodyOf(operation: Operation, { body, params }: Came): unknown {
  const { body: fields, list, single, spec, required = [] } = requests[operation]
  if (spec === 'job') {
    if (isObject(body) || typeof body === 'string') return body
    throw refused('be a job spec')
  }
  if (list !== undefined || spec === 'stages') {
    if (Array.isArray(body)) return body
    if (single && isObject(body)) return [body]
    throw refused(single ? 'be an object or a list of them' : 'be a list')
  }
  if (body !== undefined && !isObject(body)) throw refused('be an object')
  // Parameters of the path that are not the id belong to the body; there they must not be said again.
  const { id: _, ...named } = params
  checkOptions(body ?? {}, without(fields ?? {}, Object.keys(named)), operation)
  const missing = required.find(name => (body as Record<string, unknown> | undefined)?.[name] === undefined)
  if (missing !== undefined) throw new Problem('OPTION_INVALID', { at: operation, option: missing, must: 'be given' })
  return { ...body, ...named }
}

function without<Value>(fields: Readonly<Record<string, Value>>, names: readonly string[]): Record<string, Value> {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))
}

function refused(must: string): Problem {
  return new Problem('BODY_INVALID', { why: `it must ${must}` })
}

/** A query holds texts only: what each is meant to be, its field says. */
function queryOf(fields: Fields, query: Came['query'], operation: string): Record<string, unknown> {
  const entries = Object.entries(query).map(([name, value]) => {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    return [name, field === undefined ? value : meant(value, field)] as const
  })
  const made = Object.fromEntries(entries)
  checkOptions(made, fields, operation)
  return made
}

function meant(value: string | readonly string[], schema: Schema): unknown {
  const kinds = [schema, ...((schema.anyOf as Schema[] | undefined) ?? [])].map(({ type }) => type)
  const texts = [value].flat().flatMap(text => (kinds.includes('array') ? text.split(',') : [text]))
  if (kinds.includes('array')) return texts
  const [text] = texts as [string]
  if (texts.length > 1) return texts
  if (kinds.includes('boolean') && (text === 'true' || text === 'false')) return text === 'true'
  const isNumber = kinds.includes('integer') || kinds.includes('number')
  return isNumber && text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : text
}
