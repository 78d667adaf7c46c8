/**
 * Starts the workers of stages in Kubernetes, and compares the expected state with the actual one. Any number of
 * servers do this at once: names are derived from stage and round, and findings are written under the usual guards. It
 * detects lost workers earlier than their leases do, and never replaces the leases.
 */
import type { Context } from '../engine/context.ts'
import { advanceJob } from '../engine/jobs/advance-job.ts'
import type { LockedJob } from '../engine/jobs/locked-job.ts'
import { loseLease } from '../kernel/decide.ts'
import {
  compare,
  type Findings,
  type HeldWorker,
  type LostWorker,
  lostOthers,
  type OtherWorker,
  type RunningStage,
  type Seen,
  type SeenJob,
  vanishedReason,
} from '../runners/compare.ts'
import { isHopeless, type KubernetesRunner } from '../runners/kubernetes.ts'
import { podsOf, type StageToRun } from '../runners/manifest.ts'
import { isJobName, jobNameOf, otherPodOf, podOf } from '../runners/names.ts'
import { clockMs } from '../store/driver/clock.ts'
import { storeFault } from '../store/driver/store-fault.ts'
import type { StageRow } from '../store/jobs/jobs.ts'
import {
  type CommandStage,
  findEndedRounds,
  findLeaseHolders,
  findRunsToStop,
  openCommandStages,
  recordMissingRuns,
  recordRuns,
  recordStoppedRuns,
  runsOf,
} from '../store/jobs/runs.ts'
import { applyVerdicts, type Chore } from './chore.ts'

type EndedRun = Awaited<ReturnType<typeof findRunsToStop>>[number]

/** Interval for checking the runner's own namespace when nothing is known to run there. */
const ownCheckSeconds = 60

/** Not woken early: the signal for files fires whenever a task ends, and each run lists everything there is. */
export function runInKubernetes(runner: KubernetesRunner, everySeconds = 10): Chore {
  let ownCheckAt = 0
  const otherPods = watchOtherPods(runner)
  return {
    name: 'kubernetes',
    everySeconds,
    async run(context) {
      const stages = (await openCommandStages(context.sql)).filter(({ files }) => files.runner?.kind === 'kubernetes')
      const started = await start(context, runner, stages)
      // Read before listing the cluster: anything that starts in between must be in neither.
      const holders = await findLeaseHolders(context.sql, idsOf(stages))
      const running = stages.map(stage => toRunning(stage, runner.namespace))
      const workers = await findNamespaces(context, holders)
      const ended = await findRunsToStop(context.sql)
      const now = await clockMs(context.sql)
      const spaces = [...running, ...workers, ...ended].map(({ namespace }) => namespace)
      if (now >= ownCheckAt) spaces.push(runner.namespace)
      if (spaces.length === 0) return {}
      // One interval early, so that the next check is not late.
      if (spaces.includes(runner.namespace)) ownCheckAt = now + (ownCheckSeconds - everySeconds) * 1000
      const seen = await runner.inspect(spaces)
      for (const { namespace, problem } of seen.blind) {
        context.log('kubernetes.unseen', { namespace, error: problem.message })
      }
      const findings = compare({ now: new Date(now), stages: running, workers, seen })
      const others = await otherPods(
        holders.map(({ worker }) => worker),
        [runner.namespace, ...running.map(({ namespace }) => namespace)],
      )
      const lost = await applyFindings(context, stages, findings, holders, [...findings.lostWorkers, ...others])
      await stopEnded(context, runner, ended, seen)
      const strays = await stopStrays(context, runner, findings.strays, ended)
      return { started, lost, strays, failed: findings.vanishedFor15Min.length + findings.ended.length }
    },
  }
}

const idsOf = (stages: readonly CommandStage[]) => stages.map(({ stageId }) => stageId)

function toRunning({ stageId, round, files, madeAt, missingSince }: CommandStage, usual: string): RunningStage {
  const namespace = files.runner?.kind === 'kubernetes' ? (files.runner.namespace ?? usual) : usual
  return { stageId, round, namespace, createdAt: madeAt, missingSince }
}

async function start(context: Context, runner: KubernetesRunner, stages: readonly CommandStage[]): Promise<number> {
  const fresh = stages.filter(({ madeAt }) => madeAt === null)
  const ensured = await runner.ensure(fresh.flatMap(toRun))
  const problems = new Map(ensured.flatMap(({ stageId, problem }) => (problem ? [[stageId, problem] as const] : [])))
  const made = fresh.filter(({ stageId }) => !problems.has(stageId))
  await recordRuns(
    context.sql,
    made.map(stage => toRunning(stage, runner.namespace)),
  )
  // Includes stages that were started earlier, because the process that started them may have died before it cleared
  // the problem.
  for (const stage of stages) {
    const { stageId, jobId } = stage
    const problem = problems.get(stageId)
    const message = problem?.message ?? null
    if (problem !== undefined) context.log('kubernetes.refused', { stageId, jobId, error: message })
    const showing =
      problem !== undefined && isHopeless(problem)
        ? failStage(context, stage, problem.message)
        : message !== stage.trouble
          ? noteTrouble(context, stage, message)
          : undefined
    await showing?.catch(error => {
      // Another process holds the job. The next run shows the problem; other jobs need not wait.
      if (storeFault(error) !== 'locked') throw error
      context.log('job.busy', { jobId })
    })
  }
  return made.length
}

function toRun(stage: CommandStage): StageToRun[] {
  const { files, madeAt: _made, missingSince: _missing, left: _left, trouble: _trouble, parallelism, ...rest } = stage
  if (files.run === null || files.runner?.kind !== 'kubernetes') return []
  return [{ ...rest, parallelism: podsOf(files.runner, parallelism), run: files.run, runner: files.runner }]
}

type Holders = Awaited<ReturnType<typeof findLeaseHolders>>

/**
 * Finds the namespaces of the workers' pods. A queue may be shared, so a pod's namespace is not that of the task's
 * stage but that of the Job that created the pod. If that Job was never recorded, the namespace is unknown.
 */
async function findNamespaces({ sql }: Context, holders: Holders): Promise<HeldWorker[]> {
  const workers = [...new Set(holders.map(({ worker }) => worker))]
  const runs = await runsOf(sql, [...new Set(workers.flatMap(worker => podOf(worker)?.stageId ?? []))])
  const spaces = new Map(runs.map(run => [jobNameOf(run), run.namespace]))
  return workers.flatMap(worker => {
    const namespace = spaces.get(podOf(worker)?.job ?? '')
    return namespace === undefined ? [] : [{ worker, namespace }]
  })
}

async function applyFindings(
  context: Context,
  stages: readonly CommandStage[],
  findings: Findings,
  holders: Holders,
  lostWorkers: readonly LostWorker[],
): Promise<number> {
  const { missing, back, vanishedFor15Min, ended } = findings
  await recordMissingRuns(context.sql, missing, back)
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
  const { moved } = await applyVerdicts(context, [...taken.keys()], task => {
    const { worker, epoch } = taken.get(task.id)!
    const isHeld = task.state === 'assigned' || task.state === 'running'
    return isHeld && task.epoch === epoch ? loseLease(task, { charged: true, why: why.get(worker)! }) : undefined
  })
  return moved
}

function failStage(context: Context, stage: CommandStage, message: string): Promise<void> {
  return changeStage(context, stage, (locked, open) => {
    locked.decideStageEnd(open, 'failed', 'runner_failed', { error: { message } })
  })
}

/**
 * Shows on an open stage why it does not progress, or clears that with null. This decides nothing: once the stage ends,
 * its error is the reason for its end.
 */
function noteTrouble(context: Context, stage: CommandStage, message: string | null): Promise<void> {
  return changeStage(context, stage, (locked, open) => {
    locked.setStage(open, { error: message === null ? null : { message } })
  })
}

/** Changes a stage under the lock of its job, only if it is still running in that round. */
function changeStage(
  context: Context,
  { stageId, jobId, round }: CommandStage,
  change: (locked: LockedJob, stage: StageRow) => void,
): Promise<void> {
  return advanceJob(context, jobId, 'babysitter', locked => {
    const stage = locked.stages.find(({ id }) => id === stageId)
    const isOpen = stage?.state === 'pending' || stage?.state === 'running'
    if (stage !== undefined && isOpen && stage.round === round && stage.endsAs === null) change(locked, stage)
  })
}

/**
 * Stops the workers of rounds that are over, and forgets those that are gone. Held and paused stages keep their
 * workers. A Job that failed its stage stays for inspection, for its `ttlSeconds`.
 */
async function stopEnded(
  context: Context,
  runner: KubernetesRunner,
  ended: readonly EndedRun[],
  seen: Seen,
): Promise<void> {
  const isActive = (run: EndedRun) =>
    seen.jobs.some(job => job.stageId === run.stageId && job.round === run.round && job.state === 'active')
  for (const run of ended.filter(isActive)) await runner.stop(run)
  const gone = ended.filter(run => seen.namespaces.includes(run.namespace) && !isActive(run))
  await recordStoppedRuns(context.sql, gone)
}

/**
 * Stops Jobs of rounds that are over but were never recorded, because their creator was killed or late. Whether a round
 * is over is read after listing the cluster, when everything listed had already started. A Job whose stage is unknown
 * to this store may belong to another installation and is left alone.
 */
async function stopStrays(
  { sql }: Context,
  runner: KubernetesRunner,
  strays: readonly SeenJob[],
  ended: readonly EndedRun[],
): Promise<number> {
  const seenTo = new Set(ended.map(jobNameOf))
  const ours = strays.filter(job => isJobName(job.name) && job.name === jobNameOf(job) && !seenTo.has(job.name))
  const over = new Set((await findEndedRounds(sql, ours)).map(jobNameOf))
  const loose = ours.filter(({ name }) => over.has(name))
  for (const { stageId, round, namespace } of loose) await runner.stop({ stageId, round, namespace })
  return loose.length
}

/**
 * Watches workers in pods that Pawl did not start, such as a Deployment of your own. The namespace of such a worker is
 * not known from its name, so a missing pod counts as vanished only if it was seen before. A pod that is found dead
 * needs no such proof. Sightings are kept in memory only. After a restart of the server, leases decide until the pod is
 * seen again.
 */
function watchOtherPods(runner: KubernetesRunner) {
  let seenIn = new Map<string, string>()
  return async (workers: readonly string[], namespaces: readonly string[]): Promise<readonly LostWorker[]> => {
    const others = [...new Set(workers)].flatMap((worker): OtherWorker[] => {
      const pod = otherPodOf(worker)
      return pod === undefined ? [] : [{ worker, ...pod, namespace: seenIn.get(worker) ?? null }]
    })
    if (others.length === 0) return []
    const spaces = [...namespaces, ...others.flatMap(({ namespace }) => namespace ?? [])]
    const { lost, alive } = lostOthers(others, await runner.findPods(spaces, new Set(others.map(({ name }) => name))))
    // Workers whose pods could not be looked up this time stay known. Workers that no longer hold a task are forgotten.
    const known = others.flatMap(({ worker, namespace }) => (namespace === null ? [] : [[worker, namespace] as const]))
    seenIn = new Map([...known, ...alive])
    return lost
  }
}
