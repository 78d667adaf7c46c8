import { Problem } from '../../kernel/problem.ts'
import { flattenSettings } from '../../kernel/settings.ts'
import type { CallerTransaction } from '../../kernel/transactions.ts'
import { checkDeadlines, type TaskDefinition, taskTypeRecordFields } from '../../protocol/tasks/new-task.ts'
import type { TaskTypeRecord } from '../../protocol/tasks/tasks.ts'
import { recordOf } from '../../protocol/tasks/type-record.ts'
import { faultOf } from '../../spec/json-schema/evaluate.ts'
import { hasTaskType, putTaskType } from '../../store/tasks/read-tasks.ts'
import { checkedJson, checkOptions, text } from '../check.ts'
import type { Context } from '../context.ts'
import { KnownSchemas } from './payload-checks.ts'

/** The types that this process has registered, and what it knows of others. */
export interface RegisteredTypes {
  readonly known: Map<string, TaskDefinition>
  /** Types whose settings are in the store. They are written once, and again when they change. */
  readonly written: Map<string, TaskDefinition>
  readonly schemas: KnownSchemas
}

export const noTypes = (): RegisteredTypes => ({
  known: new Map(),
  written: new Map(),
  schemas: new KnownSchemas(),
})

export async function writeTaskType(
  context: Context,
  type: string,
  record: TaskTypeRecord,
  tx?: CallerTransaction,
): Promise<void> {
  await putTaskType(context.sqlFor(tx), ...checkedType(type, record))
}

function checkedType(type: string, { payloadSchema, ...options }: TaskTypeRecord) {
  checkOptions({ type }, { type: text(200) }, 'task type')
  checkOptions({ ...options, payloadSchema }, taskTypeRecordFields, `task type ${type}`)
  const settings = flattenSettings(options) ?? {}
  checkDeadlines(settings, `task type ${type}`)
  return [type, settings, schemaText(payloadSchema)] as const
}

export async function registerType(context: Context, definition: TaskDefinition, tx?: CallerTransaction) {
  const { known, written } = context.types
  if (written.get(definition.type) !== definition) {
    const record = checkedType(definition.type, recordOf(definition))
    // The caller's transaction may still be rolled back, so only another connection sees whether the type stays.
    const isThere = tx !== undefined && !context.oneConnection && (await hasTaskType(context.separate, ...record))
    if (!isThere) await putTaskType(context.sqlFor(tx), ...record)
    if (isThere || tx === undefined) written.set(definition.type, definition)
  }
  known.set(definition.type, definition)
}

const mostSchemaBytes = 100_000

/** Returns the schema as JSON text; null: remove it; undefined: leave it as it is. */
function schemaText(schema: TaskTypeRecord['payloadSchema']): string | null | undefined {
  if (schema === undefined || schema === null) return schema
  const text = checkedJson(schema, mostSchemaBytes, 'payloadSchema')
  const must = faultOf(JSON.parse(text))
  if (must !== undefined) throw new Problem('OPTION_INVALID', { at: 'task type', option: 'payloadSchema', must })
  return text
}
