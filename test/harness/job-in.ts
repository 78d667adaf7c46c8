/** Brings jobs and stages into a state by actions of users and workers, and summarizes their history. */
import { jobDeadlines } from '../../src/babysitter/job-chores.ts'
import { type JobState, jobLifecycle } from '../../src/kernel/job.ts'
import { statesOf } from '../../src/kernel/lifecycle.ts'
import { Problem } from '../../src/kernel/problem.ts'
import { type StageState, stageLifecycle } from '../../src/kernel/stage.ts'
import type { ClaimedTask } from '../../src/protocol/tasks/sync.ts'
import type { EventView } from '../../src/protocol/tasks/tasks.ts'
import type { JobSpec, StageSpec } from '../../src/spec/job-spec.ts'
import type { Fresh } from './fresh.ts'
import { claim, stageOf, type Word, workOff } from './jobs.ts'

export const everyJobState: readonly JobState[] = statesOf(jobLifecycle)
export const everyStageState: readonly StageState[] = statesOf(stageLifecycle)

/** Stages `a` and `b`, one after the other, each with one task of its name. */
export const twoStages: readonly StageSpec[] = [
  { name: 'a', task: 'a' },
  { name: 'b', task: 'b' },
]

/** Claims and starts all tasks of a queue. */
export async function begin(f: Fresh, queue: string, limit = 100): Promise<readonly ClaimedTask[]> {
  const claimed = await claim(f, [queue], limit)
  await f.engine.sync({ worker: 'w', started: claimed.map(({ id, epoch }) => ({ id, epoch })) })
  return claimed
}

/** A job of the stages `a` and `b`, in a state. */
export async function jobIn(f: Fresh, state: JobState): Promise<string> {
  const { engine } = f
  const made = async (spec: Omit<JobSpec, 'name'> = {}) =>
    (await engine.submit({ name: 'j', stages: twoStages, ...spec })).id
  const worked = async (spec: Omit<JobSpec, 'name'>, a: Word, b: Word) => {
    const id = await made(spec)
    await workOff(f, 'a', a)
    await workOff(f, 'b', b)
    return id
  }
  const [a, b] = twoStages as [StageSpec, StageSpec]
  const ways: Record<JobState, () => Promise<string>> = {
    created: () => made({ start: false }),
    pending: () => made(),
    running: async () => {
      const id = await made()
      await begin(f, 'a')
      return id
    },
    paused: async () => (await engine.pauseJob(await made())).id,
    stopping: async () => (await engine.cancelJob(await ways.running())).id,
    compensating: () => worked({ stages: [{ ...a, compensate: { task: 'undo' } }, b] }, 'succeeded', 'failed'),
    succeeded: () => worked({}, 'succeeded', 'succeeded'),
    partial: () => worked({ stages: [{ ...a, onFailure: 'continue' }, b] }, 'failed', 'succeeded'),
    failed: () => worked({}, 'succeeded', 'failed'),
    cancelled: async () => (await engine.cancelJob(await made())).id,
    expired: async () => {
      const id = await made({ deadlineSeconds: 1000 })
      await f.advance(1001)
      await jobDeadlines.run(engine.context)
      return id
    },
  }
  return ways[state]()
}

/** The stage `b` of a job in which `a` comes first, in a state. */
export async function stageIn(f: Fresh, state: StageState): Promise<{ readonly id: string; readonly jobId: string }> {
  const { engine } = f
  const made = async (spec: Partial<StageSpec> = {}) => {
    const stages = [twoStages[0]!, { ...twoStages[1]!, ...spec }]
    const { id: jobId } = await engine.submit({ name: 'j', stages })
    if (state !== 'created') await workOff(f, 'a')
    return { id: (await stageOf(f, jobId, 'b')).id, jobId }
  }
  const worked = async (word: Word) => {
    const stage = await made()
    await workOff(f, 'b', word)
    return stage
  }
  const ways: Record<StageState, () => Promise<{ id: string; jobId: string }>> = {
    created: () => made(),
    waiting: () => made({ gate: true }),
    pending: () => made(),
    running: async () => {
      const stage = await made()
      await begin(f, 'b')
      return stage
    },
    stopping: async () => {
      const stage = await ways.running()
      await engine.cancelStage(stage.id)
      return stage
    },
    succeeded: () => worked('succeeded'),
    skipped: () => made({ when: 'false' }),
    partial: () => worked('partial'),
    failed: () => worked('failed'),
    cancelled: async () => {
      const stage = await made()
      await engine.cancelStage(stage.id)
      return stage
    },
  }
  return ways[state]()
}

/** The transitions among events, in order: `created → pending`. Events without a transition are left out. */
export function movesIn({ items }: { readonly items: readonly EventView[] }): string[] {
  return items.filter(({ from, to }) => from !== to).map(({ from, to }) => `${from ?? '*'} → ${to}`)
}

/** The problem that a request was rejected with. Any other error is thrown. */
export async function refusalOf(
  asked: Promise<unknown>,
): Promise<{ code: string; state: unknown; possible: string[] }> {
  const thrown: unknown = await asked.then(
    () => new Error('it was granted'),
    error => error,
  )
  if (!(thrown instanceof Problem)) throw thrown
  const { code, details } = thrown
  return { code, state: details.state, possible: details.possible as string[] }
}
