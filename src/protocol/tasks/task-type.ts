import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec'
import { Problem } from '../../kernel/problem.ts'
import type { TaskTypeOptions, TaskTypeRecord } from './tasks.ts'

/** A task type in this process. `In` is the queued payload; the handler gets the output of the schema. */
export interface TaskDefinition<In = unknown> {
  readonly type: string
  readonly schema: StandardSchemaV1<In, unknown> | undefined
  readonly options: TaskTypeOptions
}

/** The settings of a type for the server, with a JSON Schema if the schema can be converted to one. */
export function recordOf({ schema, options }: TaskDefinition): TaskTypeRecord {
  const standard = schema?.['~standard'] as Partial<StandardJSONSchemaV1.Props> | undefined
  try {
    const payloadSchema = standard?.jsonSchema?.input({ target: 'draft-2020-12' })
    return payloadSchema === undefined || looksAround(payloadSchema) ? options : { ...options, payloadSchema }
  } catch {
    // Some checks of schemas have no equivalent in JSON Schema.
    return options
  }
}

/** Whether a schema has patterns that the server refuses, because it matches patterns in linear time. */
function looksAround(schema: object): boolean {
  let isFound = false
  JSON.stringify(schema, (name, value) => {
    if (name === 'pattern' && typeof value === 'string') isFound ||= /\(\?(?:<?[=!])|\\(?:[1-9]|k<)/.test(value)
    return value
  })
  return isFound
}

/** Validates a payload and returns the output of the schema. Throws a problem that lists all issues. */
export async function checkPayload(definition: TaskDefinition, payload: unknown, at: string): Promise<unknown> {
  if (definition.schema === undefined) return payload
  const result = await definition.schema['~standard'].validate(payload)
  if (result.issues === undefined) return result.value
  const issues = result.issues.map(({ message, path = [] }) => {
    const where = path.map(key => String(typeof key === 'object' ? key.key : key)).join('.')
    return where === '' ? message : `${where}: ${message}`
  })
  throw new Problem('PAYLOAD_REFUSED', { at, type: definition.type, issues })
}
