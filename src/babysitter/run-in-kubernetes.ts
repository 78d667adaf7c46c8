/**
 * Starts the workers of stages in Kubernetes, and compares what should run with what does. Any number of servers do this
 * at once: names follow from stage and round, and what is found is written under the guards that hold anyway. It only
 * speeds leases up, and never stands for them.
 */
import type { Context } from '../engine/context.ts'
import { driveJob } from '../engine/drive.ts'
import { loseLease } from '../kernel/decide.ts'
import { compare, type Findings, type RunningStage, vanishedReason } from '../runners/compare.ts'
import { isHopeless, type Runner, type Seen, type StageToRun } from '../runners/runner.ts'
import { podsOf } from '../runners/stages-to-run.ts'
import { clockMs } from '../store/clock.ts'
import {
  holdersIn,
  noteMissing,
  noteRuns,
  noteStopped,
  openCommandStages,
  runsToEnd,
  type StageOfRunner,
} from '../store/runs.ts'
import type { Chore } from './chore.ts'
import { judge } from './judge.ts'

type NamedRunner = Runner & { readonly namespace: string }
type EndedRun = Awaited<ReturnType<typeof runsToEnd>>[number]

export function runInKubernetes(runner: NamedRunner, everySeconds = 10): Chore {
  return {
    name: 'kubernetes',
    everySeconds,
    bell: ({ fileBell }) => fileBell,
    async run(context) {
      const stages = (await openCommandStages(context.sql)).filter(({ files }) => files.runner?.kind === 'kubernetes')
      const started = await start(context, runner, stages)
      // What is compared was read before the look: what began between the two is in neither.
      const holders = await holdersIn(context.sql, idsOf(stages))
      const running = stages.map(stage => toRunning(stage, runner.namespace))
      const ended = await runsToEnd(context.sql)
      if (running.length + ended.length === 0) return {}
      const seen = await runner.look([...running, ...ended].map(({ namespace }) => namespace))
      for (const { namespace, problem } of seen.blind) {
        context.log('kubernetes.unseen', { namespace, error: problem.message })
      }
      const spaceOf = new Map(running.map(({ stageId, namespace }) => [stageId, namespace]))
      const workers = holders.map(({ worker, stageId }) => ({ worker, namespace: spaceOf.get(stageId)! }))
      const findings = compare({ now: new Date(await clockMs(context.sql)), stages: running, workers, seen })
      const lost = await heed(context, stages, findings, holders)
      await stopEnded(context, runner, ended, seen)
      return { started, lost, failed: findings.vanishedFor15Min.length + findings.ended.length }
    },
  }
}

const idsOf = (stages: readonly StageOfRunner[]) => stages.map(({ stageId }) => stageId)

function toRunning({ stageId, round, files, madeAt, missingSince }: StageOfRunner, usual: string): RunningStage {
  const namespace = files.runner?.kind === 'kubernetes' ? (files.runner.namespace ?? usual) : usual
  return { stageId, round, namespace, createdAt: madeAt, missingSince }
}

async function start(context: Context, runner: NamedRunner, stages: readonly StageOfRunner[]): Promise<number> {
  const fresh = stages.filter(({ madeAt }) => madeAt === null)
  const ensured = await runner.ensure(fresh.flatMap(toRun))
  const problems = new Map(ensured.flatMap(({ stageId, problem }) => (problem ? [[stageId, problem] as const] : [])))
  const made = fresh.filter(({ stageId }) => !problems.has(stageId))
  await noteRuns(
    context.sql,
    made.map(stage => toRunning(stage, runner.namespace)),
  )
  for (const stage of fresh) {
    const problem = problems.get(stage.stageId)
    if (problem === undefined) continue
    context.log('kubernetes.refused', { stageId: stage.stageId, jobId: stage.jobId, error: problem.message })
    if (isHopeless(problem)) await failStage(context, stage, problem.message)
  }
  return made.length
}

function toRun(stage: StageOfRunner): StageToRun[] {
  const { files, madeAt: _made, missingSince: _missing, left: _left, parallelism, ...rest } = stage
  if (files.run === null || files.runner?.kind !== 'kubernetes') return []
  return [{ ...rest, parallelism: podsOf(parallelism), run: files.run, runner: files.runner }]
}

type Holders = Awaited<ReturnType<typeof holdersIn>>

async function heed(
  context: Context,
  stages: readonly StageOfRunner[],
  findings: Findings,
  holders: Holders,
): Promise<number> {
  const { missing, back, vanishedFor15Min, ended, lostWorkers } = findings
  await noteMissing(context.sql, missing, back)
  const reasons = new Map([
    ...vanishedFor15Min.map(id => [id, vanishedReason] as const),
    ...ended.map(({ stageId, why }) => [stageId, why] as const),
  ])
  for (const stage of stages) {
    const why = reasons.get(stage.stageId)
    if (why !== undefined) await failStage(context, stage, why)
  }
  const why = new Map(
    lostWorkers.map(({ worker, reason, detail }) => [worker, detail ? `${reason}: ${detail}` : reason]),
  )
  const taken = new Map(holders.filter(({ worker }) => why.has(worker)).map(holder => [holder.id, holder]))
  const { moved } = await judge(context, [...taken.keys()], task => {
    const { worker, epoch } = taken.get(task.id)!
    const isHeld = task.state === 'assigned' || task.state === 'running'
    return isHeld && task.epoch === epoch ? loseLease(task, { charged: true, why: why.get(worker)! }) : undefined
  })
  return moved
}

/** Only while it runs in that round. */
async function failStage(context: Context, { stageId, jobId, round }: StageOfRunner, message: string): Promise<void> {
  await driveJob(context, jobId, 'babysitter', book => {
    const stage = book.stages.find(({ id }) => id === stageId)
    const isOpen = stage?.state === 'pending' || stage?.state === 'running'
    if (stage === undefined || !isOpen || stage.round !== round || stage.endsAs !== null) return
    book.intendStage(stage, 'failed', 'runner_failed', { error: { message } })
  })
}

/**
 * Lets the workers of rounds that are over go, and forgets those that are gone. One that is held or paused keeps its
 * workers. A Job that failed its stage is left to be looked at, for as long as it says.
 */
async function stopEnded(context: Context, runner: Runner, ended: readonly EndedRun[], seen: Seen): Promise<void> {
  const isActive = (run: EndedRun) =>
    seen.jobs.some(job => job.stageId === run.stageId && job.round === run.round && job.state === 'active')
  for (const run of ended.filter(isActive)) await runner.stop(run)
  const gone = ended.filter(run => seen.namespaces.includes(run.namespace) && !isActive(run))
  await noteStopped(context.sql, gone)
}
