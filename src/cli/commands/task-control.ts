import { type ReasonCode, reasonCodes, type Step, steps } from '../../kernel/decide.ts'
import type { TaskView } from '../../protocol/tasks.ts'
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

const plain = (word: 'resume' | 'retry', says: string): Command =>
  showingCommand({
    name: `task ${word}`,
    says,
    takes,
    flags: callFlags,
    run: async ({ api, args, flags }) => answer(await api[word](await findTaskId(api, args.id), callOf(flags))),
  })

const taskCancel = showingCommand({
  name: 'task cancel',
  says: 'Call a task off.',
  takes,
  flags: cancelFlags,
  run: async ({ api, args, flags }) => answer(await api.cancel(await findTaskId(api, args.id), cancelOf(flags))),
})

const taskDeadLetter = showingCommand({
  name: 'task dead-letter',
  says: 'Set a task aside for people.',
  takes,
  flags: {
    ...callFlags,
    code: { kind: 'text', value: 'CODE', says: 'what kind of trouble; default policy_violation', words: reasonCodes },
    step: { kind: 'text', value: 'STEP', says: 'where it went wrong', words: steps },
  },
  async run({ api, args, flags }) {
    const { code = 'policy_violation', step } = flags
    const call = { ...callOf(flags), reasonCode: code as ReasonCode, ...said({ step: step as Step | undefined }) }
    return answer(await api.deadLetter(await findTaskId(api, args.id), call))
  },
})

const taskDelete = apiCommand({
  name: 'task delete',
  says: 'Delete a task that has ended and stands alone, and all that is kept of it.',
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
  plain('resume', 'Open the next round of a task that was cancelled.'),
  plain('retry', 'Open the next round of a task that failed or expired.'),
  taskDeadLetter,
  taskDelete,
]
