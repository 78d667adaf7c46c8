import { type ReasonCode, reasonCodes, type Step, steps } from '../../kernel/decide.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import { apiCommand, type Command, showingCommand } from '../command.ts'
import { findTaskId } from '../find-id.ts'
import { cancelFlags, cancelOptions, controlOptions, historyFlags, withoutUndefined } from '../shared-flags.ts'
import { styledState } from '../states.ts'
import { type Line, styled } from '../styled-line.ts'

const parameters = { id: 'the id of the task, or its beginning or end' } as const

const answer = (task: TaskView) => ({
  data: task,
  show: (): Line[] => [
    [
      styled('bold', task.type),
      ` ${task.id} is `,
      styledState('task', task.state),
      task.cancelRequestedAt === null || task.endedAt !== null ? '' : '; its worker will be told to stop',
    ],
  ],
})

const simpleCommand = (word: 'resume' | 'retry', summary: string): Command =>
  showingCommand({
    name: `task ${word}`,
    summary,
    parameters,
    flags: historyFlags,
    run: async ({ api, args, flags }) => answer(await api[word](await findTaskId(api, args.id), controlOptions(flags))),
  })

const taskCancel = showingCommand({
  name: 'task cancel',
  summary: 'Cancel a task.',
  parameters,
  flags: cancelFlags,
  run: async ({ api, args, flags }) => answer(await api.cancel(await findTaskId(api, args.id), cancelOptions(flags))),
})

const taskDeadLetter = showingCommand({
  name: 'task dead-letter',
  summary: 'Move a task to the dead-letter queue.',
  parameters,
  flags: {
    ...historyFlags,
    code: { kind: 'text', value: 'CODE', summary: 'the reason code; default: policy_violation', words: reasonCodes },
    step: { kind: 'text', value: 'STEP', summary: 'the step that failed', words: steps },
  },
  async run({ api, args, flags }) {
    const { code = 'policy_violation', step } = flags
    const call = {
      ...controlOptions(flags),
      reasonCode: code as ReasonCode,
      ...withoutUndefined({ step: step as Step | undefined }),
    }
    return answer(await api.deadLetter(await findTaskId(api, args.id), call))
  },
})

const taskDelete = apiCommand({
  name: 'task delete',
  summary: 'Delete a standalone task that has ended, with its history.',
  parameters,
  flags: historyFlags,
  async run({ api, args, flags }) {
    const id = await findTaskId(api, args.id)
    await api.deleteTask(id, controlOptions(flags))
    return { data: { id, deleted: true }, show: () => [`Deleted ${id}.`] }
  },
})

export const taskControl: readonly Command[] = [
  taskCancel,
  simpleCommand('resume', 'Start the next round of a cancelled task.'),
  simpleCommand('retry', 'Start the next round of a failed or expired task.'),
  taskDeadLetter,
  taskDelete,
]
