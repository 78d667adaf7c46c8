import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec'
import { Problem } from '../../kernel/problem.ts'
import type { TaskTypeOptions, TaskTypeRecord } from './tasks.ts'

/** A type of task as this process knows it. `In` is what is queued; a handler gets what the schema makes of it. */
export interface TaskDefinition<In = unknown> {
  readonly type: string
  readonly schema: StandardSchemaV1<In, unknown> | undefined
  readonly options: TaskTypeOptions
}

/** What is told to the server of a type. Schemas that can, say what they want as JSON Schema; others keep it to themselves. */
export function recordOf({ schema, options }: TaskDefinition): TaskTypeRecord {
  const standard = schema?.['~standard'] as Partial<StandardJSONSchemaV1.Props> | undefined
  try {
    const payloadSchema = standard?.jsonSchema?.input({ target: 'draft-2020-12' })
    return payloadSchema === undefined || looksAround(payloadSchema) ? options : { ...options, payloadSchema }
  } catch {
    // Some of what a schema can check has no JSON Schema.
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

/** What the schema makes of a payload; a problem that lists why, where it refuses it. */
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
