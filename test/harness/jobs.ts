/** Works on jobs by hand: the test claims tasks and chooses their outcomes. */
import type { ReportedOutcome, TaskError } from '../../src/kernel/decide.ts'
import type { ClaimedTask, SpawnedTask } from '../../src/protocol/tasks/sync.ts'
import type { Fresh } from './fresh.ts'

export interface Report {
  readonly outcome: ReportedOutcome
  readonly output?: unknown
  readonly partial?: boolean
  readonly error?: TaskError
  readonly spawn?: readonly SpawnedTask[]
}

/** A report of a task: its outcome as one word, or the whole report. */
export type Word = ReportedOutcome | 'partial' | 'permanent' | Report

export function reportOf(word: Word): Report {
  if (typeof word !== 'string') return word
  if (word === 'partial') return { outcome: 'succeeded', partial: true }
  if (word === 'permanent') return { outcome: 'failed', error: { message: 'no', permanent: true } }
  return word === 'failed' ? { outcome: 'failed', error: { message: 'no', permanent: true } } : { outcome: word }
}

export async function claim(
  { engine }: Fresh,
  queues: readonly string[],
  limit = 100,
): Promise<readonly ClaimedTask[]> {
  return (await engine.sync({ worker: 'w', queues, claim: limit })).claimed
}

/** Claims the tasks of a queue and reports the same outcome for each. Returns their number. */
export async function workOff(fresh: Fresh, queue: string, word: Word = 'succeeded', limit = 1000): Promise<number> {
  const claimed = await claim(fresh, [queue], limit)
  await say(fresh, claimed, word)
  return claimed.length
}

export async function say({ engine }: Fresh, tasks: readonly ClaimedTask[], word: Word): Promise<void> {
  if (tasks.length === 0) return
  const settled = tasks.map(({ id, epoch }) => ({ id, epoch, ...reportOf(word) }))
  const { refused } = await engine.sync({ worker: 'w', settled })
  if (refused.length > 0) throw new Error(`refused: ${JSON.stringify(refused)}`)
}

/** The states of a job and of its stages, in a line: `running: a succeeded, b pending`. */
export async function statesOf({ engine }: Fresh, id: string): Promise<string> {
  const { state, stages } = await engine.job(id)
  const parts = stages.map(stage => `${stage.kind === 'undo' ? 'undo ' : ''}${stage.name} ${stage.state}`)
  return `${state}: ${parts.join(', ')}`
}

export async function stageOf({ engine }: Fresh, id: string, name: string) {
  const { stages } = await engine.job(id)
  const stage = stages.find(each => each.name === name && each.kind === 'work')
  if (stage === undefined) throw new Error(`there is no stage ${name}`)
  return stage
}
