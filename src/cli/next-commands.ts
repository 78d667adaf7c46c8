/** The commands that are possible after a refusal, so that it can be answered by typing one of them. */
import type { JobMove } from '../kernel/job.ts'
import type { MoveOf } from '../kernel/lifecycle.ts'
import type { stageLifecycle } from '../kernel/stage.ts'
import type { TaskMove } from '../kernel/task.ts'

type CommandsByMove<M extends string> = Readonly<Partial<Record<M, readonly string[]>>>

/** The commands that make the moves of operators. A move without a command is made by a command about its parent. */
const commandsByMove = {
  task: {
    cancel: ['task cancel'],
    resume: ['task resume'],
    retry: ['task retry'],
    deadLetter: ['task dead-letter'],
    redrive: ['dlq redrive'],
  } satisfies CommandsByMove<TaskMove>,
  stage: {
    hold: ['stage hold'],
    approve: ['stage approve'],
    reject: ['stage reject'],
    cancel: ['stage cancel'],
    revive: ['stage retry'],
  } satisfies CommandsByMove<MoveOf<typeof stageLifecycle>>,
  job: {
    submit: ['job start'],
    pause: ['job pause'],
    unpause: ['job resume'],
    cancel: ['job cancel'],
    revive: ['job retry', 'job resume'],
  } satisfies CommandsByMove<JobMove>,
} as const

/** The commands for the details of a MOVE_REFUSED; none if nobody can change the job, stage or task. */
export function nextCommands({ id, job, stage, possible }: Readonly<Record<string, unknown>>): string[] {
  const entity = stage !== undefined ? 'stage' : job !== undefined ? 'job' : 'task'
  const commands: Readonly<Record<string, readonly string[]>> = commandsByMove[entity]
  const moves = Array.isArray(possible) ? possible : []
  return moves.flatMap(move => commands[String(move)] ?? []).map(name => `pawl ${name} ${stage ?? job ?? id}`)
}
