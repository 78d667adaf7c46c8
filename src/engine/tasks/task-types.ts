import { Problem } from '../../kernel/problem.ts'
import { settingsOf } from '../../kernel/settings.ts'
import { checkDeadlines } from '../../protocol/fields.ts'
import { taskTypeRecordFields } from '../../protocol/tasks/new-task.ts'
import { checkPayload, recordOf, type TaskDefinition } from '../../protocol/tasks/task-type.ts'
import type { NewTaskItem, TaskTypeRecord } from '../../protocol/tasks/tasks.ts'
import { faultOf } from '../../spec/payload-schema.ts'
import { putTaskType } from '../../store/tasks/read-tasks.ts'
import { checkedJson, checkOptions, text } from '../check.ts'
import type { CallerTransaction, Context } from '../context.ts'

/** Types that this process has defined. Their settings are written once, and again when they change. */
export function typeRegister(context: Context) {
  const known = new Map<string, TaskDefinition>()
  const written = new Map<string, TaskDefinition>()
  const put = async (type: string, { payloadSchema, ...options }: TaskTypeRecord, tx?: CallerTransaction) => {
    checkOptions({ type }, { type: text(200) }, 'task type')
    checkOptions({ ...options, payloadSchema }, taskTypeRecordFields, `task type ${type}`)
    const settings = settingsOf(options) ?? {}
    checkDeadlines(settings, `task type ${type}`)
    await putTaskType(context.within(tx), type, settings, schemaText(payloadSchema))
  }
  return {
    put,
    async register(definition: TaskDefinition, tx?: CallerTransaction) {
      if (written.get(definition.type) !== definition) {
        await put(definition.type, recordOf(definition), tx)
        // What a transaction wrote may still be rolled back.
        if (tx === undefined) written.set(definition.type, definition)
      }
      known.set(definition.type, definition)
    },
    async checkPayloads(items: readonly NewTaskItem[]) {
      if (known.size === 0) return
      for (const [index, item] of items.entries()) {
        const definition = known.get(item.type)
        if (definition !== undefined) await checkPayload(definition, item.payload, `tasks[${index}].payload`)
      }
    },
  }
}

const mostSchemaBytes = 100_000

/** JSON text; null: none is wanted any more; undefined: nothing is said of it. */
function schemaText(schema: TaskTypeRecord['payloadSchema']): string | null | undefined {
  if (schema === undefined || schema === null) return schema
  const text = checkedJson(schema, mostSchemaBytes, 'payloadSchema')
  const must = faultOf(JSON.parse(text))
  if (must !== undefined) throw new Problem('OPTION_INVALID', { at: 'task type', option: 'payloadSchema', must })
  return text
}
