/** The commands of workers: claims, starts, beats and settles, under live leases and lost ones. */
import assert from 'node:assert/strict'
import { settle } from '../../src/kernel/decide.ts'
import { newId } from '../../src/kernel/id.ts'
import { leaseLength } from '../../src/kernel/settings.ts'
import type { CancelNotice, SyncAnswer } from '../../src/protocol/tasks/sync.ts'
import { type Command, type Pick, type Reported, workers } from './commands.ts'
import { factsOf, holding, isHeld, isOpen, type Lease, type Model, type ModelTask, obey, record } from './model.ts'
import type { World } from './world.ts'

type Of<Name extends Command['do']> = Extract<Command, { do: Name }>

export async function claim(world: World, { worker: w, queues, limit, session }: Of<'claim'>): Promise<void> {
  const { engine, model, syncIds } = world
  const worker = workers[w]!
  if (session === 'next') syncIds[w]! += 1
  const syncId = `${syncIds[w]}`
  const isAgain = session !== 'none' && model.sessions.get(worker)?.syncId === syncId
  const named = session === 'none' ? {} : { session: world.sessionIds[w]!, syncId }
  const answer = await engine.sync({ worker, queues, claim: limit, ...named })
  const won = isAgain
    ? model.sessions.get(worker)!.won.flatMap(lease => holding(model, lease) ?? [])
    : answer.claimed.map(({ id }) => model.tasks.get(id)!)
  if (!isAgain) checkChoice(model, won, queues, limit)
  for (const task of isAgain ? [] : won) take(model, task, worker)
  const leases = won.map(({ id, epoch }) => ({ id, epoch }))
  if (!isAgain) model.leases.push(...leases)
  if (!isAgain && session !== 'none' && won.length > 0) model.sessions.set(worker, { syncId, won: leases })

  assert.deepEqual(byId(answer.claimed), byId(won.map(task => handedOut(model, task))))
  assert.deepEqual(answer.refused, [])
  checkNotices(model, worker, answer)
}

/**
 * Checks the choice of a claim: the best lane first, the oldest tasks first within a lane, up to the limit. Tasks that came
 * due at the same moment may be in any order. At most one careful task is claimed, but all of them count as seen.
 */
function checkChoice(model: Model, won: readonly ModelTask[], queues: readonly string[], limit: number): void {
  const lanes = model.lanes.filter(({ queue }) => queues.includes(queue)).sort((a, b) => b.priority - a.priority)
  const due = [...model.tasks.values()].filter(task => isOpen(task) && task.runAt <= model.clock)
  const moments = lanes.flatMap(({ queue, priority }) => {
    const inLane = due.filter(task => task.queue === queue && task.priority === priority)
    const times = [...new Set(inLane.map(({ runAt }) => runAt))].sort((a, b) => a - b)
    return times.map(time => inLane.filter(({ runAt }) => runAt === time))
  })
  let left = limit
  let careful = 0
  for (const moment of moments) {
    const seen = Math.min(left, moment.length)
    const apart = moment.filter(task => task.careful).length
    const chosen = moment.filter(task => won.includes(task))
    const plain = chosen.filter(task => !task.careful).length
    careful += chosen.length - plain
    assert.ok(plain <= seen && plain >= seen - apart, `${plain} chosen of ${moment.length}, ${seen} seen`)
    if (seen > moment.length - apart) assert.equal(careful, 1, 'a careful task was seen')
    left -= seen
  }
  assert.ok(careful <= 1, 'one careful task at a time')
  const all = new Set(moments.flat())
  assert.deepEqual(
    won.filter(task => !all.has(task)),
    [],
  )
}

function take(model: Model, task: ModelTask, worker: string): void {
  record(task, 'assigned', { ts: model.clock, actor: `worker:${worker}`, cause: 'claimed' })
  task.owner = worker
  task.leaseUntil = model.clock + 1000 * leaseLength(task.settings)
}

function handedOut(model: Model, task: ModelTask) {
  const { id, epoch, queue, payload, failures, losses, checkpoint, careful, settings } = task
  return {
    ...{ id, epoch, type: queue, payload, attempt: failures + losses + 1, checkpoint, careful },
    leaseUntil: new Date(task.leaseUntil!).toISOString(),
    leaseSeconds: (task.leaseUntil! - model.clock) / 1000,
    ...{ heartbeatSeconds: settings.heartbeatSeconds, timeoutSeconds: settings.timeoutSeconds },
    ...{ jobId: null, stageId: null, correlationId: null, traceparent: null },
  }
}

const byId = <T extends { id: string }>(items: readonly T[]) => [...items].sort((a, b) => (a.id < b.id ? -1 : 1))

/** The answer must list the soft cancels of the tasks that the worker holds. */
function checkNotices(model: Model, worker: string, { cancel }: SyncAnswer): void {
  const cancelled = [...model.tasks.values()].filter(
    task => isHeld(task) && task.owner === worker && task.cancelAt !== null,
  )
  const expected: CancelNotice[] = cancelled.map(({ id, epoch, cancelAt, settings: { graceSeconds } }) => {
    const left = (cancelAt! + 1000 * graceSeconds - model.clock) / 1000
    return { id, epoch, mode: 'soft', graceSeconds: Math.max(0, left) }
  })
  assert.deepEqual(byId(cancel), byId(expected))
}

/** Selects a lease; if `fitting`, a live one. If there are none, returns a lease that never existed. */
function pickLease(model: Model, { n, fitting }: Pick): Lease {
  const live = fitting ? model.leases.filter(lease => holding(model, lease) !== undefined) : []
  const among = live.length > 0 ? live : model.leases
  return among[n % among.length] ?? { id: newId(), epoch: 1 }
}

const same = (one: Lease) => (other: Lease) => one.id === other.id && one.epoch === other.epoch

export async function report(world: World, command: Of<'report'>): Promise<void> {
  const { engine, model } = world
  const worker = workers[command.worker]!
  const lease = <P extends Pick>({ n, fitting, ...rest }: P) => ({ ...rest, ...pickLease(model, { n, fitting }) })
  const settleReports = command.settles.map(lease)
  const startReports = command.starts.map(lease)
  // A heartbeat skips locked rows, and a settle locks the row even if its lease was lost.
  const beatReports = command.beats
    .map(lease)
    .filter(({ id, epoch }) => settleReports.every(item => item.id !== id || item.epoch === epoch))
  const answer = await engine.sync({
    ...{ worker, started: startReports, beats: beatReports.map(withoutUndefined) },
    settled: settleReports.map(({ report, ...rest }) => ({ ...rest, ...report })),
  })
  // Repeated reports on a lease count once. Two heartbeats are merged, and the later value wins.
  const settled = merged(settleReports, ({ id, epoch, report }) => `${id} ${epoch} ${report.outcome}`)
  const started = merged(startReports, ({ id, epoch }) => `${id} ${epoch}`)
  const beats = merged(
    beatReports,
    ({ id, epoch }) => `${id} ${epoch}`,
    (first, later) => ({ ...first, ...withoutUndefined(later) }),
  )
  // A settle implies the start and makes heartbeats unnecessary. The other reports are applied in their order.
  const refused: Lease[] = []
  const notSettled = (item: Lease) => !settled.some(same(item))
  for (const item of settled) if (!settleOne(model, item, worker)) refused.push(item)
  for (const item of started.filter(notSettled)) if (!startOne(model, item, worker)) refused.push(item)
  const refusedStarts = started.filter(item => refused.some(same(item)))
  const accepted = beats.filter(item => notSettled(item) && !refusedStarts.some(same(item)))
  for (const item of accepted) if (!beatOne(model, item)) refused.push(item)

  const name = ({ id, epoch }: Lease) => `${id} ${epoch} LEASE_LOST`
  const names = answer.refused.map(({ id, epoch, code }) => `${id} ${epoch} ${code}`)
  assert.deepEqual(names.sort(), refused.map(name).sort())
  if (beats.some(notSettled)) checkNotices(model, worker, answer)
}

/** The first report on a lease counts. A repetition is acknowledged, whatever the state is by now; others are refused. */
function settleOne(model: Model, item: Lease & Pick_<Reported>, worker: string): boolean {
  const task = holding(model, item)
  if (task === undefined) {
    const events = model.tasks.get(item.id)?.events ?? []
    const end = events.find(
      ({ epoch, from, to }) => epoch === item.epoch && from !== to && isHeldState(from) && !isHeldState(to),
    )
    return end?.cause === `reported_${item.report.outcome}`
  }
  const isPlain = item.report.outcome === 'succeeded' && item.report.partial !== true
  const isShort = isPlain && task.state === 'assigned'
  // The fast path for successes records the worker that claimed the task as the actor.
  const actor = isPlain ? task.events.findLast(({ type }) => type === 'task.claimed')!.actor : `worker:${worker}`
  const beganAt = isShort ? model.clock - item.ranMs : model.clock
  return obey(model, task, settle(factsOf(task), item.report, Math.random()), actor, beganAt)
}

type Pick_<T> = Omit<T, keyof Pick>

const isHeldState = (state: string | null) => state === 'assigned' || state === 'running'

function startOne(model: Model, item: Lease & { agoMs: number }, worker: string): boolean {
  const task = holding(model, item)
  if (task?.state !== 'assigned') return task !== undefined
  record(task, 'running', { ts: model.clock - item.agoMs, actor: `worker:${worker}`, cause: 'reported_start' })
  task.heardAt = model.clock
  return true
}

function beatOne(model: Model, item: Lease & { progress: unknown; checkpoint: unknown }): boolean {
  const task = holding(model, item)
  if (task === undefined) return false
  task.leaseUntil = model.clock + 1000 * leaseLength(task.settings)
  task.progress = item.progress ?? task.progress
  task.checkpoint = item.checkpoint ?? task.checkpoint
  model.beats += 1
  return true
}

function merged<Item>(items: readonly Item[], keyOf: (item: Item) => string, merge = (first: Item, _: Item) => first) {
  const kept = new Map<string, Item>()
  for (const item of items) {
    const first = kept.get(keyOf(item))
    kept.set(keyOf(item), first === undefined ? item : merge(first, item))
  }
  return [...kept.values()]
}

function withoutUndefined<T extends object>(item: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(item).filter(([, value]) => value !== undefined)) as never
}
