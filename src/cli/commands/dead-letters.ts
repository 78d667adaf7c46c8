import { type ReasonCode, reasonCodes } from '../../kernel/decide.ts'
import { withoutUndefined } from '../../kernel/without-undefined.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import { apiCommand, type Command, showingCommand } from '../command.ts'
import { relativeTime } from '../durations.ts'
import { exitCodes } from '../error-message.ts'
import { findTaskId } from '../find-id.ts'
import { invalidCommand } from '../parse.ts'
import { controlOptions, historyFlags, pageFlags } from '../shared-flags.ts'
import { type Line, styled } from '../styled-line.ts'
import { type Column, pageResult } from '../table.ts'

const columns: readonly Column<TaskView>[] = [
  { header: 'ID', value: ({ id }) => id, cut: 'start', minWidth: 9 },
  { header: 'TYPE', value: ({ type }) => type },
  { header: 'REASON', value: ({ deadLetter }) => deadLetter?.reasonCode ?? '', minWidth: 10 },
  { header: 'STEP', value: ({ deadLetter }) => deadLetter?.step ?? '', optional: true },
  { header: 'ATTEMPTS', value: ({ deadLetter }) => String(deadLetter?.attempts ?? ''), align: 'right', optional: true },
  { header: 'SINCE', value: ({ endedAt }) => relativeTime(endedAt), align: 'right', optional: true },
  { header: 'LAST ERROR', value: ({ error }) => error?.message ?? '', optional: true },
]

const filterFlags = {
  type: { kind: 'text', value: 'TYPE', summary: 'only this type', completes: 'type' },
  queue: { kind: 'text', value: 'NAME', summary: 'only this queue', completes: 'queue' },
  code: { kind: 'text', value: 'CODE', summary: 'only with this reason code', words: reasonCodes },
  message: { kind: 'text', value: 'TEXT', summary: 'only with this error message; numbers in it are ignored' },
} as const

const dlqList = showingCommand({
  name: 'dlq list',
  summary: 'List the dead-letter queue: tasks that need attention.',
  flags: { ...filterFlags, ...pageFlags },
  async run({ api, flags }) {
    const { type, queue, code, message, limit, cursor } = flags
    const reasonCode = code as ReasonCode | undefined
    const page = await api.deadLetters(withoutUndefined({ type, queue, reasonCode, message, limit, cursor }))
    return pageResult(page, columns, 'There are no dead letters.')
  },
})

const dlqRedrive = apiCommand({
  name: 'dlq redrive',
  summary: 'Redrive dead letters: one, those that match a filter, or --all.',
  parameters: { 'id?': 'the id of a task, or its beginning or end' },
  completes: 'deadLetter',
  flags: {
    ...filterFlags,
    all: { kind: 'switch', summary: 'all dead letters' },
    'dry-run': { kind: 'switch', summary: 'show what would be redriven, without changing anything' },
    rate: { kind: 'number', value: 'N', summary: 'maximum number per second' },
    payload: { kind: 'json', value: 'JSON', summary: 'replaces the payload of every redriven task' },
    limit: { kind: 'number', value: 'N', summary: 'maximum number, oldest first; default: all' },
    ...historyFlags,
  },
  async run({ api, args, flags }) {
    const { type, queue, code, message, rate: ratePerSecond, limit, payload } = flags
    if ([args.id, type, queue, code, message, flags.all].every(filter => filter === undefined)) {
      throw invalidCommand('pawl dlq redrive requires an ID, a filter (--type, --queue, --code, --message), or --all.')
    }
    const { actor, reason } = controlOptions(flags)
    const ids = args.id === undefined ? undefined : [await findTaskId(api, args.id)]
    const reasonCode = code as ReasonCode | undefined
    const dryRun = flags['dry-run']
    const request = withoutUndefined({
      ids,
      type,
      queue,
      reasonCode,
      message,
      dryRun,
      ratePerSecond,
      limit,
      payload,
      reason,
    })
    const answer = await api.redrive(request, withoutUndefined({ actor }))
    const { redriven, refused, state, total } = answer
    const show = (): Line[] => [
      `${dryRun ? 'Would redrive' : 'Redriven'}: ${redriven.length} of ${total}`,
      ...(state === 'running' ? [`Still running. For its progress: pawl dlq progress ${answer.id}`] : []),
      ...redriven.slice(0, 20).map(id => `  ${id}`),
      ...(redriven.length > 20 ? ['  …'] : []),
      ...refused.map(({ id, code, message }): Line => [styled('red', `  refused ${id}`), ` ${code}: ${message}`]),
    ]
    return { data: answer, show, code: refused.length > 0 ? exitCodes.bad : exitCodes.good }
  },
})

const dlqProgress = apiCommand({
  name: 'dlq progress',
  summary: 'Show the progress of a redrive.',
  parameters: { id: 'the id of the redrive, printed by pawl dlq redrive' },
  async run({ api, args }) {
    const progress = await api.redriveProgress(args.id)
    const { state, total, redriven, refused, refusals } = progress
    const show = (): Line[] => [
      `${state}: ${redriven} of ${total} redriven, ${refused} refused`,
      ...refusals.slice(0, 20).map(({ id, code }): Line => [styled('red', `  refused ${id}`), ` ${code}`]),
    ]
    return { data: progress, show }
  },
})

export const deadLetterCommands: readonly Command[] = [dlqList, dlqRedrive, dlqProgress]
