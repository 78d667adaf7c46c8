/** Random jobs: any graph that a spec may hold, of two to twelve stages. */
import type { Join } from '../../src/kernel/plan.ts'
import type { JobSpec, StageSpec } from '../../src/spec/job-spec.ts'
import type { Dice } from '../harness/dice.ts'

export const queues = ['red', 'green', 'blue', 'undo'] as const

/** The payload of a task: the number of its job, and its probability of failure. */
export interface Load {
  readonly job: number
  readonly badLuck: number
}

/** Enough tasks in a stage that they are released, cancelled and retried in more than one batch. */
const large = 1500

export function randomJob(dice: Dice, job: number, size: 'small' | 'large' = 'small'): JobSpec {
  const load: Load = { job, badLuck: dice.among([0, 0.03, 0.1, 0.3])! }
  const count = size === 'large' ? 3 : whole(dice, 2, 12)
  const stages: StageSpec[] = []
  for (let n = 0; n < count; n++) stages.push(randomStage(dice, load, stages))
  if (size === 'large') {
    const { payload: _, forEach: __, gate: ___, parallelism: ____, ...stage } = stages[1]!
    stages[1] = { ...stage, task: 'red', payloads: Array.from({ length: large }, () => load) }
  }
  return {
    name: `job-${job}`,
    priority: whole(dice, 0, 3),
    input: { go: chance(dice, 0.6), list: Array.from({ length: whole(dice, 0, 4) }, () => load) },
    ...(chance(dice, 0.05) && { start: false }),
    ...(chance(dice, 0.05) && { deadlineSeconds: 300 }),
    ...(chance(dice, 0.08) && { open: dice.among([true, 'untilDone'] as const)! }),
    stages,
  }
}

export function randomStage(dice: Dice, load: Load, above: readonly { readonly name: string }[]): StageSpec {
  const name = `s${above.length}`
  const needs = chance(dice, 0.35) || above.length === 0 ? undefined : someOf(dice, above).map(stage => stage.name)
  const known = needs ?? above.slice(-1).map(stage => stage.name)
  const join = known.length === 0 ? 'all' : dice.among<Join>(['all', 'all', 'any', 'done'])!
  const isMereGate = chance(dice, 0.05)
  return {
    name,
    ...(needs !== undefined && { needs }),
    join,
    ...(chance(dice, 0.25) && { when: condition(dice, known) }),
    ...(isMereGate ? { gate: { approvers: 1 } } : tasksOf(dice, load, known)),
    ...(chance(dice, 0.12) && {
      gate: { approvers: whole(dice, 1, 2), timeoutSeconds: dice.among([null, null, 200])! },
    }),
    ...(chance(dice, 0.3) && { tolerate: dice.among([{ count: 1 }, { percent: 50 }])! }),
    ...(chance(dice, 0.3) && { failFast: false }),
    ...(chance(dice, 0.5) && { onFailure: dice.among(['continue', 'continue', 'failAtOnce'] as const)! }),
    ...(chance(dice, 0.25) && { compensate: { task: 'undo' } }),
    ...(chance(dice, 0.15) && { parallelism: whole(dice, 1, 2) }),
    ...(chance(dice, 0.1) && { expireInSeconds: 60 }),
    ...(chance(dice, 0.3) && { deadLetter: 'never' as const }),
    retry: { attempts: 2, losses: 2, delaySeconds: 0.01, jitter: false },
  }
}

function tasksOf(dice: Dice, load: Load, known: readonly string[]): Partial<StageSpec> {
  const task = dice.among(queues.slice(0, 3))!
  const above = dice.among(known)
  const throws = dice.throw()
  if (throws < 0.2) return { task, forEach: 'input.list' }
  if (throws < 0.25 && above !== undefined) return { task, forEach: `stages.${above}.output` }
  if (throws < 0.35) return { task, payload: load }
  const payloads = Array.from({ length: whole(dice, 1, 5) }, () => load)
  return { task, payloads, ...(chance(dice, 0.1) && { open: dice.among([true, 'untilDone'] as const)! }) }
}

function condition(dice: Dice, known: readonly string[]): string {
  const above = dice.among(known)
  const ofAbove = above === undefined ? [] : [`stages.${above}.state != "partial"`, `stages.${above}.good > 0`]
  // The evaluation of the last one is an error, which fails its stage.
  return dice.among(['input.go', 'input.go', '!input.go', 'size(input.list) > 1', ...ofAbove, 'input.nowhere.to == 1'])!
}

function someOf<T>(dice: Dice, items: readonly T[]): T[] {
  const chosen = new Set(Array.from({ length: whole(dice, 0, 3) }, () => dice.among(items)!))
  return [...chosen]
}

export function chance(dice: Dice, share: number): boolean {
  return dice.throw() < share
}

/** From `least` to `most`, both included. */
export function whole(dice: Dice, least: number, most: number): number {
  return least + Math.floor(dice.throw() * (most - least + 1))
}
