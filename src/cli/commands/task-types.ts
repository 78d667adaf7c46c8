import { sanitizeJson } from '../../kernel/sanitize.ts'
import type { TaskTypeOptions } from '../../protocol/tasks/tasks.ts'
import { isObject } from '../../schema/check.ts'
import { pageFlags, said } from '../asking.ts'
import { apiCommand, type Command } from '../command.ts'
import { type Line, styled } from '../line.ts'
import { readJson, refused } from '../parse.ts'
import { facts, pageEnd } from '../table.ts'

const view = (type: string, options: TaskTypeOptions) => ({
  data: options,
  show: () => [
    styled('bold', type),
    ...facts(Object.entries(options).map(([name, value]) => [name, sanitizeJson(value)] as const)),
  ],
})

const typeSet = apiCommand({
  name: 'type set',
  summary: 'Configure how tasks of a type are leased, retried and kept.',
  more: `For example: pawl type set send-invoice '{ "retry": { "attempts": 5 }, "leaseSeconds": 120 }'
It replaces what was said before.`,
  takes: { type: 'the type', options: 'what is said of it, as JSON' },
  async run({ api, args }) {
    const options = readJson('OPTIONS', args.options)
    if (!isObject(options)) throw refused('OPTIONS must be an object.')
    await api.putTaskType(args.type, options)
    return view(args.type, await api.taskType(args.type))
  },
})

const typeShow = apiCommand({
  name: 'type show',
  summary: 'Show the configuration of a task type.',
  takes: { type: 'the type' },
  run: async ({ api, args }) => view(args.type, await api.taskType(args.type)),
})

const typeList = apiCommand({
  name: 'type list',
  summary: 'List configured task types.',
  flags: pageFlags,
  async run({ api, flags }) {
    const page = await api.taskTypes(said({ limit: flags.limit, cursor: flags.cursor }))
    const show = (): Line[] =>
      page.items.length === 0
        ? ['No task type is configured.']
        : [...page.items.map(({ type }) => type), ...pageEnd(page)]
    return { data: page, show }
  },
})

export const typeCommands: readonly Command[] = [typeList, typeSet, typeShow]
