/**
 * Processes that work on random jobs at the same time: workers that succeed, fail, release and die, operators, a
 * babysitter.
 */
import assert from 'node:assert/strict'
import type { Chore } from '../../src/babysitter/chore.ts'
import { ageLanes, endGraces, expireTasks } from '../../src/babysitter/chores.ts'
import { jobDeadlines } from '../../src/babysitter/job-chores.ts'
import { rescue } from '../../src/babysitter/rescue.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { jobLifecycle } from '../../src/kernel/job.ts'
import { isFinal } from '../../src/kernel/lifecycle.ts'
import { Problem, type ProblemCode } from '../../src/kernel/problem.ts'
import { stageLifecycle } from '../../src/kernel/stage.ts'
import type { JobView, StageView } from '../../src/protocol/jobs/jobs.ts'
import type { ClaimedTask, SettledTask } from '../../src/protocol/tasks/sync.ts'
import type { Dice } from '../harness/dice.ts'
import { chance, type Load, queues, randomStage, whole } from './random-job.ts'

export interface Crowd {
  readonly dice: Dice
  /** Job ids by number. Clones have no number; `all` contains them. */
  readonly jobs: string[]
  /** Jobs by number that are certainly paused, so that later claims win none of their tasks. Each pause has a symbol. */
  readonly paused: Map<number, symbol>
  /** Requests on jobs, by number: how many have been sent, and how many of them are unanswered. */
  readonly requests: Map<number, { begun: number; open: number }>
  advance(seconds: number): Promise<void>
}

/** Claims and settles until the signal aborts. Tasks that it still holds are dropped, as if the worker had died. */
export async function work(crowd: Crowd, engine: Engine, worker: string, signal: AbortSignal): Promise<number> {
  const { dice } = crowd
  let held: ClaimedTask[] = []
  let claimedInAll = 0
  while (!signal.aborted) {
    const [now, later] = split(held, () => chance(dice, 0.7))
    const settled = now.flatMap(task => reportOf(dice, task))
    const started = later.filter(() => chance(dice, 0.3)).map(({ id, epoch }) => ({ id, epoch }))
    const beats = later.filter(() => chance(dice, 0.2)).map(({ id, epoch }) => ({ id, epoch, progress: 1 }))
    const pausedBefore = new Map(crowd.paused)
    const mine = queues.filter(() => chance(dice, 0.8))
    const asks = { queues: mine, claim: dice.among([1, 2, 5, 50])!, waitSeconds: 0.02 }
    const { claimed, refused } = await engine.sync({ worker, ...asks, settled, started, beats }, signal)
    for (const task of claimed) await assertMayBeClaimed(crowd, engine, pausedBefore, task)
    for (const { code, message } of refused) assert.ok(bearable.includes(code), `${code} ${message}`)
    claimedInAll += claimed.length
    const unspawned = refused.filter(({ code }) => code === 'SPAWN_REFUSED').map(({ id }) => id)
    held = [...later, ...now.filter(({ id }) => unspawned.includes(id)), ...claimed]
  }
  return claimedInAll
}

const bearable: readonly string[] = ['LEASE_LOST', 'SPAWN_REFUSED', 'TASK_BUSY'] satisfies ProblemCode[]

/** I9. Compensations are exempt: their job has failed since it was paused. A clone has the payloads of its original. */
async function assertMayBeClaimed(
  { paused, jobs }: Crowd,
  engine: Engine,
  before: ReadonlyMap<number, symbol>,
  { id, type, payload }: ClaimedTask,
): Promise<void> {
  const job = (payload as Load | null)?.job
  if (type === 'undo' || job === undefined) return
  const pause = before.get(job)
  if (pause === undefined || pause !== paused.get(job)) return
  assert.notEqual((await engine.task(id)).jobId, jobs[job], `job-${job} was paused, and a task of it was claimed`)
}

function split<T>(items: readonly T[], isFirst: (item: T) => boolean): [T[], T[]] {
  const first = items.filter(isFirst)
  return [first, items.filter(item => !first.includes(item))]
}

/** A worker's report of a task; empty if the worker dies during it. */
function reportOf(dice: Dice, { id, epoch, payload, type }: ClaimedTask): SettledTask[] {
  const { badLuck = 0.1 } = (payload ?? {}) as Partial<Load>
  const report = { id, epoch, output: payload ?? null }
  if (!chance(dice, badLuck)) {
    const kind = dice.throw()
    if (kind < 0.05) return [{ ...report, outcome: 'succeeded', partial: true }]
    if (kind < 0.1) return [{ ...report, outcome: 'skipped' }]
    if (kind < 0.15) return [{ id, epoch, outcome: 'released' }]
    const isMaking = kind < 0.17 && type !== 'undo'
    return [{ ...report, outcome: 'succeeded', ...(isMaking && { spawn: [{ payload }] }) }]
  }
  const kind = dice.throw()
  if (kind < 0.2) return []
  const error = { message: 'no luck', permanent: kind < 0.6 }
  return [{ id, epoch, error, outcome: kind < 0.9 ? 'failed' : 'dead_lettered' }]
}

/**
 * Runs chores one after another. From time to time the clock moves far ahead: leases, grace periods and times to live
 * end. The chore that continues jobs is left out: no process dies between a settle and its roll-up here, so a missing
 * roll-up is a fault that must become visible.
 */
export async function babysit(crowd: Crowd, engine: Engine, signal: AbortSignal): Promise<void> {
  const runChores = chores()
  while (!signal.aborted) {
    if (chance(crowd.dice, 0.2)) await crowd.advance(whole(crowd.dice, 5, 40))
    await runChores(engine)
    await engine.sync({ worker: 'nobody', queues: ['none'], claim: 1, waitSeconds: 0.1 }, signal)
  }
}

export function chores(more: readonly Chore[] = []): (engine: Engine) => Promise<void> {
  const sighted = rescue({ now: () => 0, beginsBlind: false })
  const all = [sighted, expireTasks, endGraces, jobDeadlines, ageLanes(), ...more]
  return async engine => {
    for (const chore of all) {
      for (let isMore = true; isMore; ) {
        const did = await chore.run(engine.context)
        assert.ok(did.failed === undefined || did.failed === 0, `${chore.name}: ${JSON.stringify(did)}`)
        isMore = did.more === true
      }
    }
  }
}

const refusals: readonly string[] = [
  'MOVE_REFUSED',
  'NOTHING_TO_REDO',
  'SEALED',
  'JOB_COMPENSATED',
  'JOB_NOT_FOUND',
  'STAGE_NOT_FOUND',
  'TASK_NOT_FOUND',
  'SPEC_INVALID',
] satisfies ProblemCode[]

/** Sends a number of requests, each for a random job. They may be refused, but must not fail in any other way. */
export async function operate(crowd: Crowd, engine: Engine, requests: number): Promise<void> {
  for (let request = 0; request < requests; request++) {
    const number = whole(crowd.dice, 0, crowd.jobs.length - 1)
    const onJob = crowd.requests.get(number) ?? { begun: 0, open: 0 }
    crowd.requests.set(number, onJob)
    const isAlone = onJob.open === 0
    onJob.begun += 1
    onJob.open += 1
    const { begun } = onJob
    crowd.paused.delete(number)
    try {
      const did = await ask(crowd, engine, await engine.job(crowd.jobs[number]!))
      // Another request may have ended the pause before this answer arrived.
      if (did === 'paused' && isAlone && onJob.begun === begun) crowd.paused.set(number, Symbol())
    } catch (error) {
      if (!(error instanceof Problem) || !refusals.includes(error.code)) throw error
    } finally {
      onJob.open -= 1
    }
  }
}

async function ask(crowd: Crowd, engine: Engine, job: JobView): Promise<unknown> {
  const { dice } = crowd
  const stage = dice.among(job.stages)
  const call = chance(dice, 0.2) ? { idempotencyKey: `key-${dice.throw()}` } : {}
  const mode = dice.among(['soft', 'hard'] as const)!
  if (job.state === 'paused') return chance(dice, 0.7) && engine.resumeJob(job.id, call)
  if (chance(dice, 0.35)) return engine.pauseJob(job.id, call).then(() => 'paused')
  if (isFinal(jobLifecycle, job.state)) return again(crowd, engine, job, stage)
  if (stage === undefined || chance(dice, 0.15)) return end(engine, dice, job, mode, call)
  if (stage.state === 'waiting') {
    const actor = dice.among(['ann', 'bob'])!
    return chance(dice, 0.8) ? engine.approve(stage.id, { ...call, actor }) : engine.reject(stage.id, call)
  }
  const what = dice.throw()
  if (what < 0.3) return engine.hold(stage.id, call)
  if (what < 0.36) return engine.cancelStage(stage.id, { ...call, mode })
  if (what < 0.42) return engine.retryStage(stage.id, call)
  if (what < 0.5) return engine.addTasks(stage.id, [{ type: 'red', payload: job.input }], call)
  if (what < 0.55) return engine.sealStage(stage.id, call)
  return oneTask(dice, engine, stage, call)
}

async function end(engine: Engine, dice: Dice, job: JobView, mode: 'soft' | 'hard', call: object): Promise<unknown> {
  const what = dice.throw()
  if (what < 0.2) return engine.internals.setJobPriority(job.id, whole(dice, 0, 5), call)
  if (what < 0.4) return engine.sealJob(job.id, call)
  if (what < 0.5) return engine.startJob(job.id, call)
  if (what < 0.7) {
    const above = job.stages.filter(({ kind }) => kind === 'work')
    return engine.addStages(job.id, [randomStage(dice, { job: -1, badLuck: 0.1 }, above)], call)
  }
  const view = await engine.cancelJob(job.id, { ...call, mode })
  if (mode === 'soft' || 'idempotencyKey' in call) return view
  const left = view.stages.filter(({ kind, state }) => kind === 'work' && !isFinal(stageLifecycle, state))
  assert.deepEqual(left, [], 'after a hard cancel nothing of a job is in hand')
  return view
}

/** A request on one task of a stage. */
async function oneTask(dice: Dice, engine: Engine, stage: StageView, call: object): Promise<unknown> {
  const { items } = await engine.tasks({ stageId: stage.id, limit: 20 })
  const task = dice.among(items)
  if (task === undefined) return undefined
  if (task.state === 'dead_lettered') return engine.redrive({ ids: [task.id] }, call)
  if (task.state === 'cancelled') return engine.resume(task.id, call)
  if (task.state === 'failed' || task.state === 'expired') return engine.retry(task.id, call)
  const mode = dice.among(['soft', 'hard'] as const)!
  if (chance(dice, 0.3)) return engine.deadLetter(task.id, { ...call, reasonCode: 'policy_violation' })
  return engine.cancel(task.id, { ...call, mode })
}

/** Leaves an ended job as it is, or revives all of it, one stage or one task. */
async function again({ dice }: Crowd, engine: Engine, job: JobView, stage: StageView | undefined): Promise<unknown> {
  const what = dice.throw()
  if (what < 0.15) return engine.retryJob(job.id)
  if (what < 0.2) return engine.retryJob(job.id, { clone: true })
  if (what < 0.3) return engine.resumeJob(job.id)
  if (stage === undefined || what > 0.6) return undefined
  return what < 0.45 ? engine.retryStage(stage.id) : oneTask(dice, engine, stage, {})
}
