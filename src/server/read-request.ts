/** Maps an HTTP request to the arguments of an operation. The engine validates them, as it does in process. */

import { Problem } from '../kernel/problem.ts'
import type { ArgumentSource, OperationEntry } from '../protocol/operation.ts'
import { hasBody } from '../protocol/operations.ts'
import { checkOptions, type Fields, isObject, type Schema } from '../schema/check.ts'

export interface HttpInput {
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string | readonly string[]>>
  readonly body: unknown
}

/** The arguments in order. `name`: of the operation, for error messages. */
export function argumentsOf(
  name: string,
  operation: OperationEntry,
  input: HttpInput,
  call: object,
  signal: AbortSignal,
): unknown[] {
  const body = hasBody(operation) ? bodyOf(name, operation, input) : undefined
  const query = queryOf(operation.query ?? {}, input.query, name)
  const fields = body as Record<string, unknown>
  const sources: Record<ArgumentSource, () => unknown> = {
    id: () => input.params.id,
    query: () => query,
    body: () => body,
    options: () => ({ ...fields, ...call }),
    call: () => call,
    epoch: () => fields.epoch,
    rest: () => without(fields, ['epoch']),
    signal: () => signal,
  }
  return operation.takes.map(source => sources[source]())
}

function bodyOf(name: string, operation: OperationEntry, { body, params }: HttpInput): unknown {
  const { list, acceptsSingle, spec, required = [] } = operation
  if (spec === 'job') {
    if (isObject(body) || typeof body === 'string') return body
    throw refused('be a job spec')
  }
  if (list !== undefined || spec === 'stages') {
    if (Array.isArray(body)) return body
    if (acceptsSingle && isObject(body)) return [body]
    throw refused(acceptsSingle ? 'be an object or a list of them' : 'be a list')
  }
  if (body !== undefined && !isObject(body)) throw refused('be an object')
  // Other parameters of the path are fields of the body, which must not repeat them.
  const { id: _, ...inPath } = params
  checkOptions(body ?? {}, bodyFields(operation, Object.keys(inPath)), name)
  const missing = required.find(field => (body as Record<string, unknown> | undefined)?.[field] === undefined)
  if (missing !== undefined) throw new Problem('OPTION_INVALID', { at: name, option: missing, must: 'be given' })
  return { ...body, ...inPath }
}

const fieldsByOperation = new WeakMap<OperationEntry, Fields>()

/** The fields that a body may have, made once for each operation, because checks are remembered by table. */
function bodyFields(operation: OperationEntry, inPath: readonly string[]): Fields {
  const known = fieldsByOperation.get(operation)
  if (known !== undefined) return known
  const fields = without(operation.body ?? {}, inPath)
  fieldsByOperation.set(operation, fields)
  return fields
}

function without<Value>(fields: Readonly<Record<string, Value>>, names: readonly string[]): Record<string, Value> {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))
}

function refused(must: string): Problem {
  return new Problem('BODY_INVALID', { why: `it must ${must}` })
}

/** A query holds only texts. The schema of a field says which type is meant. */
function queryOf(fields: Fields, query: HttpInput['query'], name: string): Record<string, unknown> {
  const entries = Object.entries(query).map(([field, value]) => {
    const known = Object.hasOwn(fields, field) ? fields[field] : undefined
    return [field, known === undefined ? value : parsed(value, known)] as const
  })
  const values = Object.fromEntries(entries)
  checkOptions(values, fields, name)
  return values
}

function parsed(value: string | readonly string[], schema: Schema): unknown {
  const types = [schema, ...((schema.anyOf as Schema[] | undefined) ?? [])].map(({ type }) => type)
  const texts = [value].flat().flatMap(text => (types.includes('array') ? text.split(',') : [text]))
  if (types.includes('array')) return texts
  const [text] = texts as [string]
  if (texts.length > 1) return texts
  if (types.includes('boolean') && (text === 'true' || text === 'false')) return text === 'true'
  const isNumber = types.includes('integer') || types.includes('number')
  return isNumber && text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : text
}
