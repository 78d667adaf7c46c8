/** Builds docs/job.schema.json from the tables. It accepts all that parseJobSpec accepts; only the latter checks graphs and CEL. */
import type { Schema } from '../schema/check.ts'
import { jobField, stageField } from './fields.ts'
import { inputSchema } from './file-fields.ts'
import { jobRules, type Rule, stageRules } from './rules.ts'

export function jobSpecSchema(): Schema {
  const job = withRules(jobField, jobRules)
  const properties = job.properties as Record<string, Schema>
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'A job of Pawl',
    ...job,
    properties: { ...properties, stages: { ...properties.stages, items: { $ref: '#/$defs/stage' } } },
    $defs: { stage: withRules(stageField, stageRules), inputs: inputSchema },
  }
}

function withRules(schema: Schema, rules: readonly Rule[]): Schema {
  return { ...schema, allOf: rules.map(rule => rule.schema) }
}
