/** Describes a type that is defined in code to the server. */
import type { StandardJSONSchemaV1 } from '@standard-schema/spec'
import { isObject } from '../../schema/check.ts'
import type { TaskDefinition, TaskTypeRecord } from './new-task.ts'

/** The settings of a type for the server, with a JSON Schema if its schema can be converted to one. */
export function recordOf({ schema, options }: TaskDefinition): TaskTypeRecord {
  const standard = schema?.['~standard'] as Partial<StandardJSONSchemaV1.Props> | undefined
  try {
    const written = standard?.jsonSchema?.input({ target: 'draft-2020-12' })
    return written === undefined ? options : { ...options, payloadSchema: withoutOddPatterns(written) }
  } catch {
    // Some checks of schemas have no equivalent in JSON Schema.
    return options
  }
}

/** The server matches patterns in linear time: without lookaround, backreferences and long names of Unicode classes. */
const oddPattern = /\(\?(?:<?[=!])|\\(?:[1-9]|k<|[pP]\{\w{3})/
/** Their content is data, not schemas. */
const dataKeywords = ['const', 'enum', 'default', 'examples']
/** Under these, a schema that accepts more may make the whole accept less. */
const reversingKeywords = ['not', 'if', 'contains', '$defs', 'definitions', 'patternProperties']

/**
 * Removes the patterns that the server refuses, so that it accepts what the schema accepts, and more. Throws if that is
 * not possible. The worker still checks everything.
 */
function withoutOddPatterns<Part>(part: Part): Part {
  if (Array.isArray(part)) return part.map(withoutOddPatterns) as Part
  if (!isObject(part)) return part
  const kept = Object.entries(part).flatMap(([keyword, value]): [string, unknown][] => {
    if (dataKeywords.includes(keyword)) return [[keyword, value]]
    if (keyword === 'pattern' && typeof value === 'string') return oddPattern.test(value) ? [] : [[keyword, value]]
    if (!hasOddPattern(value)) return [[keyword, value]]
    if (reversingKeywords.includes(keyword)) throw new Error(`${keyword} cannot do without its patterns`)
    // Without their patterns, several alternatives may match.
    return [[keyword === 'oneOf' ? 'anyOf' : keyword, withoutOddPatterns(value)]]
  })
  return Object.fromEntries(kept) as Part
}

function hasOddPattern(part: unknown): boolean {
  if (Array.isArray(part)) return part.some(hasOddPattern)
  if (!isObject(part)) return false
  return Object.entries(part).some(
    ([name, value]) =>
      oddPattern.test(name) || (typeof value === 'string' ? oddPattern.test(value) : hasOddPattern(value)),
  )
}
