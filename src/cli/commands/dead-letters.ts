import { type ReasonCode, reasonCodes } from '../../kernel/decide.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import { callFlags, callOf, pageFlags, said } from '../asking.ts'
import { apiCommand, type Command, showingCommand } from '../command.ts'
import { exitCodes } from '../complain.ts'
import { findTaskId } from '../find-id.ts'
import { type Line, styled } from '../line.ts'
import { relative } from '../moments.ts'
import { refused } from '../parse.ts'
import { type Column, listed } from '../table.ts'

const columns: readonly Column<TaskView>[] = [
  { head: 'ID', of: ({ id }) => id, cut: 'start', least: 9 },
  { head: 'TYPE', of: ({ type }) => type },
  { head: 'REASON', of: ({ deadLetter }) => deadLetter?.reasonCode ?? '', least: 10 },
  { head: 'STEP', of: ({ deadLetter }) => deadLetter?.step ?? '', spare: true },
  { head: 'ATTEMPTS', of: ({ deadLetter }) => String(deadLetter?.attempts ?? ''), align: 'right', spare: true },
  { head: 'SINCE', of: ({ endedAt }) => relative(endedAt), align: 'right', spare: true },
  { head: 'LAST ERROR', of: ({ error }) => error?.message ?? '', spare: true },
]

const filterFlags = {
  type: { kind: 'text', value: 'TYPE', summary: 'only this type' },
  queue: { kind: 'text', value: 'NAME', summary: 'only this queue' },
  code: { kind: 'text', value: 'CODE', summary: 'only with this reason code', words: reasonCodes },
  message: { kind: 'text', value: 'TEXT', summary: 'only with this error message; numbers in it are ignored' },
} as const

const dlqList = showingCommand({
  name: 'dlq list',
  summary: 'List the dead-letter queue: tasks that need a person.',
  flags: { ...filterFlags, ...pageFlags },
  async run({ api, flags }) {
    const { type, queue, code, message, limit, cursor } = flags
    const reasonCode = code as ReasonCode | undefined
    const page = await api.deadLetters(said({ type, queue, reasonCode, message, limit, cursor }))
    return listed(page, columns, 'There are no dead letters.')
  },
})

const dlqRedrive = apiCommand({
  name: 'dlq redrive',
  summary: 'Redrive dead letters: one, those that match a filter, or --all.',
  takes: { 'id?': 'one of them, or the beginning or the end of its id' },
  flags: {
    ...filterFlags,
    all: { kind: 'switch', summary: 'all dead letters' },
    'dry-run': { kind: 'switch', summary: 'show what would be redriven, and change nothing' },
    rate: { kind: 'number', value: 'N', summary: 'maximum number per second' },
    payload: { kind: 'json', value: 'JSON', summary: 'replaces the payload of every redriven task' },
    limit: { kind: 'number', value: 'N', summary: 'maximum number, oldest first; default: all' },
    ...callFlags,
  },
  async run({ api, args, flags }) {
    const { type, queue, code, message, rate: ratePerSecond, limit, payload } = flags
    if ([args.id, type, queue, code, message, flags.all].every(filter => filter === undefined)) {
      throw refused('pawl dlq redrive wants an ID, a filter (--type, --queue, --code, --message), or --all.')
    }
    const { actor, reason } = callOf(flags)
    const ids = args.id === undefined ? undefined : [await findTaskId(api, args.id)]
    const reasonCode = code as ReasonCode | undefined
    const dryRun = flags['dry-run']
    const request = said({ ids, type, queue, reasonCode, message, dryRun, ratePerSecond, limit, payload, reason })
    const answer = await api.redrive(request, said({ actor }))
    const { redriven, refused: left, state, total } = answer
    const show = (): Line[] => [
      `${dryRun ? 'Would redrive' : 'Redriven'}: ${redriven.length} of ${total}`,
      ...(state === 'running' ? [`The rest follows; pawl dlq progress ${answer.id} shows how far it is.`] : []),
      ...redriven.slice(0, 20).map(id => `  ${id}`),
      ...(redriven.length > 20 ? ['  …'] : []),
      ...left.map(({ id, code, message }): Line => [styled('red', `  refused ${id}`), ` ${code}: ${message}`]),
    ]
    return { data: answer, show, code: left.length > 0 ? exitCodes.bad : exitCodes.good }
  },
})

const dlqProgress = apiCommand({
  name: 'dlq progress',
  summary: 'Show the progress of a redrive.',
  takes: { id: 'the redrive, as dlq redrive named it' },
  async run({ api, args }) {
    const progress = await api.redriveProgress(args.id)
    const { state, total, redriven, refused: left, refusals } = progress
    const show = (): Line[] => [
      `${state}: ${redriven} of ${total} redriven, ${left} refused`,
      ...refusals.slice(0, 20).map(({ id, code }): Line => [styled('red', `  refused ${id}`), ` ${code}`]),
    ]
    return { data: progress, show }
  },
})

export const deadLetterCommands: readonly Command[] = [dlqList, dlqRedrive, dlqProgress]
