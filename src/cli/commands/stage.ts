import { statesOf } from '../../kernel/lifecycle.ts'
import { type StageState, stageLifecycle } from '../../kernel/stage.ts'
import type { ApproveCall } from '../../protocol/call-options.ts'
import type { StageView } from '../../protocol/jobs/jobs.ts'
import { type Command, showingCommand } from '../command.ts'
import { relativeTime } from '../durations.ts'
import { eventLines } from '../event-lines.ts'
import { findStageId } from '../find-id.ts'
import {
  cancelFlags,
  cancelOptions,
  controlOptions,
  historyFlags,
  pageFlags,
  withoutUndefined,
} from '../shared-flags.ts'
import { styledState } from '../states.ts'
import { type Line, styled } from '../styled-line.ts'
import { type Column, pageEnd, pageResult } from '../table.ts'

const parameters = { id: 'the stage as JOB/NAME, or its id, or the beginning or end of its id' } as const

const columns: readonly Column<StageView>[] = [
  { header: 'ID', value: ({ id }) => id, cut: 'start', minWidth: 9 },
  { header: 'STAGE', value: ({ name }) => name },
  { header: 'STATE', value: ({ state }) => styledState('stage', state) },
  { header: 'JOB', value: ({ jobId }) => jobId, cut: 'start', minWidth: 9, optional: true },
  {
    header: 'DONE',
    value: ({ progress: { good, bad, total } }) => `${good + bad}/${total}`,
    align: 'right',
    optional: true,
  },
  {
    header: 'APPROVED',
    value: ({ gate, approvals }) => (gate === null ? '' : `${approvals.length} of ${gate.approvers}`),
    optional: true,
  },
  { header: 'QUESTION', value: ({ gate }) => gate?.ask ?? '', optional: true },
  { header: 'UNTIL', value: ({ gate }) => relativeTime(gate?.until ?? null), align: 'right', optional: true },
]

const stageList = showingCommand({
  name: 'stage list',
  summary: 'List stages of all jobs; by default those that wait for approval.',
  flags: {
    state: {
      kind: 'list',
      value: 'STATE',
      summary: 'only in this state, may be repeated; default: waiting',
      words: statesOf(stageLifecycle),
    },
    ...pageFlags,
  },
  async run({ api, flags }) {
    const { state = ['waiting'], limit, cursor } = flags
    const page = await api.stages({ state: state as readonly StageState[], ...withoutUndefined({ limit, cursor }) })
    return pageResult(page, columns, `No stage is ${state.join(' or ')}.`)
  },
})

const answer = (stage: StageView) => {
  const { name, state, gate, approvals, endedAt } = stage
  const isWaiting = gate !== null && endedAt === null && approvals.length < gate.approvers
  const progress = isWaiting ? ` (${approvals.length} of ${gate.approvers} approvals)` : ''
  return { data: stage, show: (): Line[] => [[styled('bold', name), ' is ', styledState('stage', state), progress]] }
}

const approveFlags = {
  ...historyFlags,
  comment: { kind: 'text', value: 'TEXT', summary: 'a comment, recorded with the decision' },
  answer: { kind: 'json', value: 'JSON', summary: 'the answer to the form of the gate; later stages can read it' },
} as const

const decisionCommand = (word: 'approve' | 'reject', summary: string): Command =>
  showingCommand({
    name: `stage ${word}`,
    summary,
    parameters,
    flags: approveFlags,
    async run({ api, args, flags }) {
      const call: ApproveCall = {
        ...controlOptions(flags),
        ...withoutUndefined({ comment: flags.comment, data: flags.answer }),
      }
      return answer(await api[word](await findStageId(api, args.id), call))
    },
  })

const simpleCommand = (word: string, summary: string, move: 'hold' | 'retryStage' | 'sealStage'): Command =>
  showingCommand({
    name: `stage ${word}`,
    summary,
    parameters,
    flags: historyFlags,
    run: async ({ api, args, flags }) =>
      answer(await api[move](await findStageId(api, args.id), controlOptions(flags))),
  })

const stageCancel = showingCommand({
  name: 'stage cancel',
  summary: 'Cancel a stage.',
  parameters,
  flags: cancelFlags,
  run: async ({ api, args, flags }) =>
    answer(await api.cancelStage(await findStageId(api, args.id), cancelOptions(flags))),
})

const stageEvents = showingCommand({
  name: 'stage events',
  summary: 'Show the events of a stage, oldest first.',
  parameters,
  flags: pageFlags,
  async run({ api, args, flags }) {
    const page = await api.stageEvents(await findStageId(api, args.id), withoutUndefined(flags))
    return { data: page, show: ({ width }) => [...eventLines(page.items, width), ...pageEnd(page)] }
  },
})

export const stageCommands: readonly Command[] = [
  stageList,
  decisionCommand('approve', 'Approve a waiting stage.'),
  decisionCommand('reject', 'Reject a waiting stage.'),
  simpleCommand('hold', 'Hold a stage until it is approved.', 'hold'),
  stageCancel,
  simpleCommand('retry', 'Retry the tasks of a stage that did not succeed.', 'retryStage'),
  simpleCommand('seal', 'Seal a stage: no more tasks can be added.', 'sealStage'),
  stageEvents,
]
