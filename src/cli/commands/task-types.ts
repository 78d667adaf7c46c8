import { sanitizeJson } from '../../kernel/sanitize.ts'
import { withoutUndefined } from '../../kernel/without-undefined.ts'
import type { TaskTypeOptions } from '../../protocol/tasks/tasks.ts'
import { isObject } from '../../schema/check.ts'
import { apiCommand, type Command } from '../command.ts'
import { invalidCommand, readJson } from '../parse.ts'
import { pageFlags } from '../shared-flags.ts'
import { type Line, styled } from '../styled-line.ts'
import { keyValueLines, pageEnd } from '../table.ts'

const view = (type: string, options: TaskTypeOptions) => ({
  data: options,
  show: () => [
    styled('bold', type),
    ...keyValueLines(Object.entries(options).map(([name, value]) => [name, sanitizeJson(value)] as const)),
  ],
})

const typeSet = apiCommand({
  name: 'type set',
  summary: 'Configure how tasks of a type are leased, retried and kept.',
  details: `For example: pawl type set send-invoice '{ "retry": { "attempts": 5 }, "leaseSeconds": 120 }'
It replaces the previous configuration.`,
  parameters: { type: 'the task type', options: 'the configuration as JSON' },
  completes: 'type',
  async run({ api, args }) {
    const options = readJson('OPTIONS', args.options)
    if (!isObject(options)) throw invalidCommand('OPTIONS must be a JSON object.')
    await api.putTaskType(args.type, options)
    return view(args.type, await api.taskType(args.type))
  },
})

const typeShow = apiCommand({
  name: 'type show',
  summary: 'Show the configuration of a task type.',
  parameters: { type: 'the task type' },
  completes: 'type',
  run: async ({ api, args }) => view(args.type, await api.taskType(args.type)),
})

const typeList = apiCommand({
  name: 'type list',
  summary: 'List configured task types.',
  flags: pageFlags,
  async run({ api, flags }) {
    const page = await api.taskTypes(withoutUndefined({ limit: flags.limit, cursor: flags.cursor }))
    const show = (): Line[] =>
      page.items.length === 0
        ? ['No task type is configured.']
        : [...page.items.map(({ type }) => type), ...pageEnd(page)]
    return { data: page, show }
  },
})

export const typeCommands: readonly Command[] = [typeList, typeSet, typeShow]
