/**
 * Starts the workers of stages in Kubernetes, and compares what should run with what does. Any number of servers do this
 * at once: names follow from stage and round, and what is found is written under the guards that hold anyway. It only
 * speeds leases up, and never stands for them.
 */
import type { Context } from '../engine/context.ts'
import { driveJob } from '../engine/jobs/drive.ts'
import { loseLease } from '../kernel/decide.ts'
import {
  compare,
  type Findings,
  type HeldWorker,
  lostOthers,
  type OtherWorker,
  type RunningStage,
  vanishedReason,
} from '../runners/compare.ts'
import { isJobName, jobNameOf, otherPodOf, podOf } from '../runners/names.ts'
import {
  isHopeless,
  type LostWorker,
  type Runner,
  type Seen,
  type SeenJob,
  type StageToRun,
} from '../runners/runner.ts'
import { podsOf } from '../runners/stages-to-run.ts'
import { clockMs } from '../store/driver/clock.ts'
import { storeFault } from '../store/driver/store-fault.ts'
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
import type { Chore } from './chore.ts'
import { judge } from './judge.ts'

type NamedRunner = Runner & { readonly namespace: string }
type EndedRun = Awaited<ReturnType<typeof findRunsToStop>>[number]

/** How long the runner's own namespace goes without a look, though nothing is known to run there. */
const ownLookSeconds = 60

/** No bell: whatever rings for files rings with every task that ends, and each look lists all that there is. */
export function runInKubernetes(runner: NamedRunner, everySeconds = 10): Chore {
  let ownLookAt = 0
  const otherPods = watchOtherPods(runner)
  return {
    name: 'kubernetes',
    everySeconds,
    async run(context) {
      const stages = (await openCommandStages(context.sql)).filter(({ files }) => files.runner?.kind === 'kubernetes')
      const started = await start(context, runner, stages)
      // What is compared was read before the look: what began between the two is in neither.
      const holders = await findLeaseHolders(context.sql, idsOf(stages))
      const running = stages.map(stage => toRunning(stage, runner.namespace))
      const workers = await placed(context, holders)
      const ended = await findRunsToStop(context.sql)
      const now = await clockMs(context.sql)
      const spaces = [...running, ...workers, ...ended].map(({ namespace }) => namespace)
      if (now >= ownLookAt) spaces.push(runner.namespace)
      if (spaces.length === 0) return {}
      // One look early, so that the next is not late.
      if (spaces.includes(runner.namespace)) ownLookAt = now + (ownLookSeconds - everySeconds) * 1000
      const seen = await runner.look(spaces)
      for (const { namespace, problem } of seen.blind) {
        context.log('kubernetes.unseen', { namespace, error: problem.message })
      }
      const findings = compare({ now: new Date(now), stages: running, workers, seen })
      const others = await otherPods(
        holders.map(({ worker }) => worker),
        [runner.namespace, ...running.map(({ namespace }) => namespace)],
      )
      const lost = await heed(context, stages, findings, holders, [...findings.lostWorkers, ...others])
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

async function start(context: Context, runner: NamedRunner, stages: readonly CommandStage[]): Promise<number> {
  const fresh = stages.filter(({ madeAt }) => madeAt === null)
  const ensured = await runner.ensure(fresh.flatMap(toRun))
  const problems = new Map(ensured.flatMap(({ stageId, problem }) => (problem ? [[stageId, problem] as const] : [])))
  const made = fresh.filter(({ stageId }) => !problems.has(stageId))
  await recordRuns(
    context.sql,
    made.map(stage => toRunning(stage, runner.namespace)),
  )
  // Also those that were started before, for whoever started them may have died before it took the trouble back.
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
      // Somebody holds the job. The next look shows it; other jobs need not wait for that.
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
 * Where the pods of these workers are. A queue may be shared, so that is not where the stages of their tasks run: a pod
 * is in the namespace of the Job that it was made for. Of one whose Job nobody noted nothing is known.
 */
async function placed({ sql }: Context, holders: Holders): Promise<HeldWorker[]> {
  const workers = [...new Set(holders.map(({ worker }) => worker))]
  const runs = await runsOf(sql, [...new Set(workers.flatMap(worker => podOf(worker)?.stageId ?? []))])
  const spaces = new Map(runs.map(run => [jobNameOf(run), run.namespace]))
  return workers.flatMap(worker => {
    const namespace = spaces.get(podOf(worker)?.job ?? '')
    return namespace === undefined ? [] : [{ worker, namespace }]
  })
}

async function heed(
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
  const { moved } = await judge(context, [...taken.keys()], task => {
    const { worker, epoch } = taken.get(task.id)!
    const isHeld = task.state === 'assigned' || task.state === 'running'
    return isHeld && task.epoch === epoch ? loseLease(task, { charged: true, why: why.get(worker)! }) : undefined
  })
  return moved
}

/** Only while it runs in that round. */
async function failStage(context: Context, { stageId, jobId, round }: CommandStage, message: string): Promise<void> {
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
  await recordStoppedRuns(context.sql, gone)
}

/**
 * Lets go what runs for a round that is over, though nobody noted that it was started: whoever made it was killed, or
 * late. Whether it is over is read after the look: what was seen had begun by then. A Job of a stage that this store
 * does not know may be another's, with a store of its own, and is left alone.
 */
async function stopStrays(
  { sql }: Context,
  runner: Runner,
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
 * Shows on an open stage why it does not go on, or that it does again (null). It decides nothing: once the stage ends, its
 * error is what ended it. Safe to repeat, and when two do it at once, for the job is locked.
 */
async function noteTrouble(
  context: Context,
  { stageId, jobId, round }: { readonly stageId: string; readonly jobId: string; readonly round: number },
  message: string | null,
): Promise<void> {
  await driveJob(context, jobId, 'babysitter', book => {
    const stage = book.stages.find(({ id }) => id === stageId)
    const isOpen = stage?.state === 'pending' || stage?.state === 'running'
    if (stage === undefined || !isOpen || stage.round !== round || stage.endsAs !== null) return
    book.setStage(stage, { error: message === null ? null : { message } })
  })
}

/**
 * Workers in pods that Pawl did not start: a Deployment of somebody else's, say. Where such a worker runs is not known from
 * its name, so a pod that is not found has vanished only if it was seen before; one that is found dead needs no more proof.
 * Sightings are kept in memory only. After a restart of the server, leases decide until the pod is seen again.
 */
export type OtherPods = (workers: readonly string[], namespaces: readonly string[]) => Promise<readonly LostWorker[]>

function watchOtherPods(runner: Runner): OtherPods {
  let seenIn = new Map<string, string>()
  return async (workers, namespaces) => {
    const others = [...new Set(workers)].flatMap((worker): OtherWorker[] => {
      const pod = otherPodOf(worker)
      return pod === undefined ? [] : [{ worker, ...pod, namespace: seenIn.get(worker) ?? null }]
    })
    if (others.length === 0) return []
    const spaces = [...namespaces, ...others.flatMap(({ namespace }) => namespace ?? [])]
    const { lost, alive } = lostOthers(others, await runner.findPods(spaces, new Set(others.map(({ name }) => name))))
    // Workers whose pods could not be looked up this time stay known. Workers that hold no task any more are forgotten.
    const known = others.flatMap(({ worker, namespace }) => (namespace === null ? [] : [[worker, namespace] as const]))
    seenIn = new Map([...known, ...alive])
    return lost
  }
}
