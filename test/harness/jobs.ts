/** Working a job by hand: claims, and what becomes of each task is said by the test. */
import type { ReportedOutcome, TaskError } from '../../src/kernel/decide.ts'
import type { ClaimedTask, SpawnedTask } from '../../src/protocol/tasks/sync.ts'
import type { Fresh } from './fresh.ts'

export interface Said {
  readonly outcome: ReportedOutcome
  readonly output?: unknown
  readonly partial?: boolean
  readonly error?: TaskError
  readonly spawn?: readonly SpawnedTask[]
}

/** A report of a task: its outcome as one word, or the whole report. */
export type Word = ReportedOutcome | 'partial' | 'permanent' | Said

export function saidBy(word: Word): Said {
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

/** Claims what there is in a queue and says the same of every task; returns how many there were. */
export async function workOff(fresh: Fresh, queue: string, word: Word = 'succeeded', limit = 1000): Promise<number> {
  const claimed = await claim(fresh, [queue], limit)
  await say(fresh, claimed, word)
  return claimed.length
}

export async function say({ engine }: Fresh, tasks: readonly ClaimedTask[], word: Word): Promise<void> {
  if (tasks.length === 0) return
  const settled = tasks.map(({ id, epoch }) => ({ id, epoch, ...saidBy(word) }))
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
