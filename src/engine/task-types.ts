import { settingsOf } from '../kernel/settings.ts'
import { checkDeadlines, taskTypeFields } from '../protocol/fields.ts'
import { checkPayload, type TaskDefinition } from '../protocol/task-type.ts'
import type { NewTaskItem, TaskTypeOptions } from '../protocol/tasks.ts'
import { putTaskType } from '../store/read.ts'
import { checkOptions, text } from './check.ts'
import type { CallerTransaction, Context } from './context.ts'

/** Types that this process has defined. Their settings are written once, and again when they change. */
export function typeRegister(context: Context) {
  const known = new Map<string, TaskDefinition>()
  const written = new Map<string, TaskDefinition>()
  const put = async (type: string, options: TaskTypeOptions, tx?: CallerTransaction) => {
    checkOptions({ type }, { type: text(200) }, 'task type')
    checkOptions(options, taskTypeFields, `task type ${type}`)
    const settings = settingsOf(options) ?? {}
    checkDeadlines(settings, `task type ${type}`)
    await putTaskType(context.within(tx), type, settings)
  }
  return {
    put,
    async register(definition: TaskDefinition, tx?: CallerTransaction) {
      if (written.get(definition.type) !== definition) {
        await put(definition.type, definition.options, tx)
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
