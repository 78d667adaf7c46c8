import { statesOf } from '../../kernel/lifecycle.ts'
import { type StageState, stageLifecycle } from '../../kernel/stage.ts'
import { withoutUndefined } from '../../kernel/without-undefined.ts'
import type { StageView } from '../../protocol/jobs/jobs.ts'
import { type Command, showingCommand } from '../command.ts'
import { counted } from '../counted.ts'
import { relativeTime } from '../durations.ts'
import { commandsFor } from '../entity-commands.ts'
import { findStageId } from '../find-id.ts'
import { pageFlags, stateFlag } from '../shared-flags.ts'
import { styledState } from '../states.ts'
import { styled } from '../styled-line.ts'
import { type Column, pageResult } from '../table.ts'

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
    state: stateFlag(statesOf(stageLifecycle), '; default: waiting'),
    ...pageFlags,
  },
  async run({ api, flags }) {
    const { state = ['waiting'], limit, cursor } = flags
    const page = await api.stages({ state: state as readonly StageState[], ...withoutUndefined({ limit, cursor }) })
    return pageResult(page, columns, `No stage is ${state.join(' or ')}.`)
  },
})

const { control, cancel, events } = commandsFor<StageView>({
  noun: 'stage',
  parameters: { id: 'the stage as JOB/NAME, or its id, or the beginning or end of its id' },
  find: findStageId,
  line({ name, state, gate, approvals, endedAt }) {
    const isWaiting = gate !== null && endedAt === null && approvals.length < gate.approvers
    const progress = isWaiting ? ` (${approvals.length} of ${counted(gate.approvers, 'approval')})` : ''
    return [styled('bold', name), ' is ', styledState('stage', state), progress]
  },
})

const decision = (word: 'approve' | 'reject', summary: string) =>
  control(
    word,
    summary,
    (api, id, call, { comment, answer: data }) => api[word](id, { ...call, ...withoutUndefined({ comment, data }) }),
    {
      comment: { kind: 'text', value: 'TEXT', summary: 'a comment, recorded with the decision' },
      answer: { kind: 'json', value: 'JSON', summary: 'the answer to the form of the gate; later stages can read it' },
    },
  )

export const stageCommands: readonly Command[] = [
  stageList,
  decision('approve', 'Approve a waiting stage.'),
  decision('reject', 'Reject a waiting stage.'),
  control('hold', 'Hold a stage until it is approved.', (api, id, call) => api.hold(id, call)),
  cancel((api, id, call) => api.cancelStage(id, call)),
  control('retry', 'Retry the tasks of a stage that did not succeed.', (api, id, call) => api.retryStage(id, call)),
  control('seal', 'Seal a stage: no more tasks can be added.', (api, id, call) => api.sealStage(id, call)),
  events((api, id, query) => api.stageEvents(id, query)),
]
