import { type ReasonCode, reasonCodes, type Step, steps } from '../../kernel/decide.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import { callFlags, callOf, cancelFlags, cancelOf, said } from '../asking.ts'
import { apiCommand, type Command, showingCommand } from '../command.ts'
import { findTaskId } from '../find-id.ts'
import { type Line, styled } from '../line.ts'
import { stateOf } from '../states.ts'

const takes = { id: 'the task, or the beginning or the end of its id' } as const

const answer = (task: TaskView) => ({
  data: task,
  show: (): Line[] => [
    [
      styled('bold', task.type),
      ` ${task.id} is `,
      stateOf('task', task.state),
      task.cancelRequestedAt === null || task.endedAt !== null ? '' : '; its worker is told to stop',
    ],
  ],
})

const plain = (word: 'resume' | 'retry', summary: string): Command =>
  showingCommand({
    name: `task ${word}`,
    summary,
    takes,
    flags: callFlags,
    run: async ({ api, args, flags }) => answer(await api[word](await findTaskId(api, args.id), callOf(flags))),
  })

const taskCancel = showingCommand({
  name: 'task cancel',
  summary: 'Cancel a task.',
  takes,
  flags: cancelFlags,
  run: async ({ api, args, flags }) => answer(await api.cancel(await findTaskId(api, args.id), cancelOf(flags))),
})

const taskDeadLetter = showingCommand({
  name: 'task dead-letter',
  summary: 'Move a task to the dead-letter queue.',
  takes,
  flags: {
    ...callFlags,
    code: { kind: 'text', value: 'CODE', summary: 'the reason code; default: policy_violation', words: reasonCodes },
    step: { kind: 'text', value: 'STEP', summary: 'the step that failed', words: steps },
  },
  async run({ api, args, flags }) {
    const { code = 'policy_violation', step } = flags
    const call = { ...callOf(flags), reasonCode: code as ReasonCode, ...said({ step: step as Step | undefined }) }
    return answer(await api.deadLetter(await findTaskId(api, args.id), call))
  },
})

const taskDelete = apiCommand({
  name: 'task delete',
  summary: 'Delete a standalone task that has ended, with its history.',
  takes,
  flags: callFlags,
  async run({ api, args, flags }) {
    const id = await findTaskId(api, args.id)
    await api.deleteTask(id, callOf(flags))
    return { data: { id, deleted: true }, show: () => [`Deleted ${id}.`] }
  },
})

export const taskControl: readonly Command[] = [
  taskCancel,
  plain('resume', 'Start the next round of a cancelled task.'),
  plain('retry', 'Start the next round of a failed or expired task.'),
  taskDeadLetter,
  taskDelete,
]
