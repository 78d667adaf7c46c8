/**
 * The expected state of tasks, computed with the kernel alone and without a database. Every change goes through `record`,
 * which allows only moves in the lifecycle table.
 */
import assert from 'node:assert/strict'
import type { TaskFacts, Verdict } from '../../src/kernel/decide.ts'
import { edgesOf } from '../../src/kernel/lifecycle.ts'
import { resolveSettings, type TaskSettings } from '../../src/kernel/settings.ts'
import { type TaskState, taskLifecycle } from '../../src/kernel/task.ts'
import { eventType } from '../harness/event-type.ts'

export interface ModelEvent {
  readonly seq: number
  readonly type: string
  readonly from: TaskState | null
  readonly to: TaskState
  readonly epoch: number
  readonly ts: number
  readonly actor: string
  readonly cause: string
  readonly payload: unknown
}

/** Times are milliseconds of the model's clock. */
export interface ModelTask {
  readonly id: string
  readonly queue: string
  readonly priority: number
  readonly key: string | undefined
  readonly settings: TaskSettings
  readonly events: ModelEvent[]
  state: TaskState
  seq: number
  round: number
  epoch: number
  failures: number
  losses: number
  careful: boolean
  partial: boolean
  owner: string | null
  runAt: number
  leaseUntil: number | null
  /** When its start was reported, which may be later than the start. */
  heardAt: number
  endedAt: number | null
  cancelAt: number | null
  expireAt: number | null
  payload: unknown
  output: unknown
  error: string | null
  reasonCode: string | null
  progress: unknown
  checkpoint: unknown
}

export interface Lease {
  readonly id: string
  readonly epoch: number
}

export interface Model {
  clock: number
  readonly types: Readonly<Record<string, Partial<TaskSettings>>>
  readonly tasks: Map<string, ModelTask>
  /** In the order of their creation. */
  readonly lanes: { readonly queue: string; readonly priority: number }[]
  /** The task that holds a dedupe key of a queue. */
  readonly keys: Map<string, string>
  /** Every lease that was ever won. */
  readonly leases: Lease[]
  /** The tasks that the last claim of a worker's session won. */
  readonly sessions: Map<string, { syncId: string; won: readonly Lease[] }>
  beats: number
}

export function newModel(clock: number, types: Model['types']): Model {
  const [tasks, keys, sessions] = [new Map(), new Map(), new Map()]
  return { clock, types, tasks, lanes: [], keys, leases: [], sessions, beats: 0 }
}

export const isHeld = (task: ModelTask) => taskLifecycle.states[task.state].kind === 'held'
export const isOpen = (task: ModelTask) => taskLifecycle.moves.claim.from.includes(task.state as never)

export function factsOf(task: ModelTask): TaskFacts {
  const { state, failures, losses, settings } = task
  const cancelling = isHeld(task) && task.cancelAt !== null
  return { state, failures, losses, lostBeforeStart: lostBeforeStart(task), settings, cancelling }
}

/** The number of uncharged losses before a start at the end of the history, with only claims between them. */
function lostBeforeStart({ events }: ModelTask): number {
  const moves = events.filter(({ from, to }) => from !== to && to !== 'assigned').toReversed()
  const isLost = ({ to, cause, payload }: ModelEvent) =>
    to === 'retrying' && cause === 'lease_lost' && !(payload as { charged: boolean }).charged
  const other = moves.findIndex(event => !isLost(event))
  return other === -1 ? moves.length : other
}

/** When the attempt of the latest lease began. */
export function startedAt({ events, epoch }: ModelTask): number | null {
  return events.find(event => event.epoch === epoch && event.type === 'task.started')?.ts ?? null
}

/** The task, if it is held under this epoch. */
export function holding(model: Model, { id, epoch }: Lease): ModelTask | undefined {
  const task = model.tasks.get(id)
  return task !== undefined && task.epoch === epoch && isHeld(task) ? task : undefined
}

export interface NewModelTask {
  readonly queue: string
  readonly priority: number
  readonly key: string | undefined
  readonly options: Partial<TaskSettings>
  readonly runInSeconds: number | undefined
  readonly payload: unknown
}

/** Queues a task, or returns the one that holds its dedupe key. */
export function enqueue(model: Model, id: string, item: NewModelTask): { id: string; state: TaskState; was: boolean } {
  const { queue, priority, key, payload } = item
  const holder = key === undefined ? undefined : holderOf(model, queue, key)
  if (holder !== undefined) return { id: holder.id, state: holder.state, was: true }
  const settings = resolveSettings(model.types[queue] ?? null, item.options)
  const task: ModelTask = {
    ...{ id, queue, priority, key, settings, payload, events: [] },
    ...{ state: 'queued', seq: 0, round: 1, epoch: 0, failures: 0, losses: 0, careful: false, partial: false },
    ...{ owner: null, leaseUntil: null, heardAt: 0, endedAt: null, cancelAt: null },
    ...{ output: null, error: null, reasonCode: null, progress: null, checkpoint: null },
    runAt: model.clock + 1000 * (item.runInSeconds ?? 0),
    expireAt: settings.expireInSeconds === null ? null : model.clock + 1000 * settings.expireInSeconds,
  }
  record(task, 'queued', { ts: model.clock, actor: 'producer', cause: 'enqueued' })
  model.tasks.set(id, task)
  if (key !== undefined) model.keys.set(slot(queue, key), id)
  return { id, state: 'queued', was: false }
}

const slot = (queue: string, key: string) => `${queue}/${key}`

/** The task that holds a dedupe key: it has not ended, or its dedupeSeconds since the end have not passed. */
export function holderOf(model: Model, queue: string, key: string): ModelTask | undefined {
  const task = model.tasks.get(model.keys.get(slot(queue, key)) ?? '')
  const isOver = task?.endedAt != null && task.endedAt + 1000 * task.settings.dedupeSeconds <= model.clock
  return isOver ? undefined : task
}

export function takeKey(model: Model, task: ModelTask): void {
  if (task.key !== undefined) model.keys.set(slot(task.queue, task.key), task.id)
}

interface EventFacts {
  readonly ts: number
  readonly actor: string
  readonly cause: string
  readonly type?: string | undefined
  readonly payload?: unknown
}

const edges = edgesOf(taskLifecycle)

/** Records a transition, or a request without one: the event, and the changes that follow from the table. */
export function record(task: ModelTask, to: TaskState, facts: EventFacts): void {
  const from = task.events.length === 0 ? null : task.state
  if (from === null) assert.ok((taskLifecycle.initial as readonly string[]).includes(to))
  else if (from === to) assert.ok(facts.type !== undefined, `${from} again needs a type of its own`)
  else {
    const edge = edges.find(edge => edge.from === from && edge.to === to)
    assert.ok(edge, `${from} -> ${to} is not a move`)
    if (edge.raisesEpoch) task.epoch += 1
    if (edge.opensRound) task.round += 1
  }
  task.seq += 1
  task.state = to
  const last = task.events.at(-1)?.ts ?? facts.ts
  const { type = eventType('task', to), actor, cause, payload = {} } = facts
  task.events.push({
    seq: task.seq,
    type,
    from,
    to,
    epoch: task.epoch,
    ts: Math.max(last, facts.ts),
    actor,
    cause,
    payload,
  })
}

/** Applies the verdict of the kernel to a task. False: it refused. `beganAt`: the time of an implied start. */
export function obey(model: Model, task: ModelTask, verdict: Verdict, actor: string, beganAt = model.clock): boolean {
  if (!verdict.ok) return false
  const { steps, patch } = verdict
  for (const step of steps) {
    const ts = step.cause === 'implied' ? beganAt : model.clock
    record(task, step.to, { ...step, ts, actor })
  }
  if (!isHeld(task)) task.leaseUntil = null
  task.failures = patch.failures ?? task.failures
  task.losses = patch.losses ?? task.losses
  task.careful = patch.careful ?? task.careful
  task.partial = patch.partial ?? task.partial
  if (patch.runInSeconds !== undefined) task.runAt = model.clock + 1000 * patch.runInSeconds
  if ('output' in patch) task.output = patch.output ?? null
  if (patch.error !== undefined) task.error = patch.error?.message ?? null
  if (patch.deadLetter !== undefined) task.reasonCode = patch.deadLetter?.reasonCode ?? null
  if (patch.cancelRequested) task.cancelAt = model.clock
  if (taskLifecycle.states[task.state].kind === 'final') task.endedAt ??= model.clock
  if (patch.opensRound) {
    task.endedAt = null
    task.cancelAt = null
    const { expireInSeconds } = task.settings
    task.expireAt = expireInSeconds === null ? null : model.clock + 1000 * expireInSeconds
  }
  return true
}
