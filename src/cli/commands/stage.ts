import { statesOf } from '../../kernel/lifecycle.ts'
import { type StageState, stageLifecycle } from '../../kernel/stage.ts'
import type { ApproveCall } from '../../protocol/call-options.ts'
import type { StageView } from '../../protocol/jobs/jobs.ts'
import { callFlags, callOf, cancelFlags, cancelOf, pageFlags, said } from '../asking.ts'
import { type Command, showingCommand } from '../command.ts'
import { eventLines } from '../events.ts'
import { findStageId } from '../find-id.ts'
import { type Line, styled } from '../line.ts'
import { relative } from '../moments.ts'
import { stateOf } from '../states.ts'
import { type Column, listed, pageEnd } from '../table.ts'

const takes = { id: 'the stage as JOB/NAME, or its id, or the beginning or the end of that' } as const

const columns: readonly Column<StageView>[] = [
  { head: 'ID', of: ({ id }) => id, cut: 'start', least: 9 },
  { head: 'STAGE', of: ({ name }) => name },
  { head: 'STATE', of: ({ state }) => stateOf('stage', state) },
  { head: 'JOB', of: ({ jobId }) => jobId, cut: 'start', least: 9, spare: true },
  { head: 'DONE', of: ({ progress: { good, bad, total } }) => `${good + bad}/${total}`, align: 'right', spare: true },
  {
    head: 'APPROVED',
    of: ({ gate, approvals }) => (gate === null ? '' : `${approvals.length} of ${gate.approvers}`),
    spare: true,
  },
  { head: 'ASKS', of: ({ gate }) => gate?.ask ?? '', spare: true },
  { head: 'UNTIL', of: ({ gate }) => relative(gate?.until ?? null), align: 'right', spare: true },
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
    const page = await api.stages({ state: state as readonly StageState[], ...said({ limit, cursor }) })
    return listed(page, columns, `No stage is ${state.join(' or ')}.`)
  },
})

const answer = (stage: StageView) => {
  const { name, state, gate, approvals, endedAt } = stage
  const isWaiting = gate !== null && endedAt === null && approvals.length < gate.approvers
  const more = isWaiting ? ` (${approvals.length} of ${gate.approvers} approvals)` : ''
  return { data: stage, show: (): Line[] => [[styled('bold', name), ' is ', stateOf('stage', state), more]] }
}

const approveFlags = {
  ...callFlags,
  comment: { kind: 'text', value: 'TEXT', summary: 'a comment, recorded with the decision' },
  answer: { kind: 'json', value: 'JSON', summary: 'the answer to the form of the gate; later stages can read it' },
} as const

const judge = (word: 'approve' | 'reject', summary: string): Command =>
  showingCommand({
    name: `stage ${word}`,
    summary,
    takes,
    flags: approveFlags,
    async run({ api, args, flags }) {
      const call: ApproveCall = { ...callOf(flags), ...said({ comment: flags.comment, data: flags.answer }) }
      return answer(await api[word](await findStageId(api, args.id), call))
    },
  })

const plain = (word: string, summary: string, move: 'hold' | 'retryStage' | 'sealStage'): Command =>
  showingCommand({
    name: `stage ${word}`,
    summary,
    takes,
    flags: callFlags,
    run: async ({ api, args, flags }) => answer(await api[move](await findStageId(api, args.id), callOf(flags))),
  })

const stageCancel = showingCommand({
  name: 'stage cancel',
  summary: 'Cancel a stage.',
  takes,
  flags: cancelFlags,
  run: async ({ api, args, flags }) => answer(await api.cancelStage(await findStageId(api, args.id), cancelOf(flags))),
})

const stageEvents = showingCommand({
  name: 'stage events',
  summary: 'Show the events of a stage, oldest first.',
  takes,
  flags: pageFlags,
  async run({ api, args, flags }) {
    const page = await api.stageEvents(await findStageId(api, args.id), said(flags))
    return { data: page, show: ({ width }) => [...eventLines(page.items, width), ...pageEnd(page)] }
  },
})

export const stageCommands: readonly Command[] = [
  stageList,
  judge('approve', 'Approve a waiting stage.'),
  judge('reject', 'Reject a waiting stage.'),
  plain('hold', 'Hold a stage until it is approved.', 'hold'),
  stageCancel,
  plain('retry', 'Retry what did not succeed in a stage.', 'retryStage'),
  plain('seal', 'Close a stage to further tasks.', 'sealStage'),
  stageEvents,
]
