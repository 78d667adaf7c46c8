/**
 * Computes the state of a task from its events. Independent of the code that wrote them: the two share only the lifecycle
 * table.
 */
import assert from 'node:assert/strict'
import type { Engine } from '../../src/engine/engine.ts'
import { edgesOf, isFinal } from '../../src/kernel/lifecycle.ts'
import { type TaskState, taskLifecycle } from '../../src/kernel/task.ts'
import type { EventView, TaskView } from '../../src/protocol/tasks/tasks.ts'
import { wholeFeed } from './world.ts'

const edges = edgesOf(taskLifecycle)
const requests = ['task.cancel_requested', 'task.payload_edited']
const failed = ['reported_failed', 'timeout']

/** Replays the events of one task, oldest first. Throws at the first that does not follow from those before it. */
function replay(events: readonly EventView[]) {
  const row = {
    ...{
      id: events[0]!.entityId,
      state: events[0]!.to as TaskState,
      seq: 0,
      round: 1,
      epoch: 0,
      failures: 0,
      losses: 0,
    },
    ...{ createdAt: events[0]!.ts, changedAt: events[0]!.ts, owner: null as string | null },
    ...{ startedAt: null as string | null, endedAt: null as string | null, isCalledOff: false },
    reasonCode: null as unknown,
  }
  for (const event of events) {
    const at = `${event.id} ${event.type}: ${event.from} -> ${event.to}`
    const key = [row.round, row.epoch, taskLifecycle.states[row.state].rank]
    assert.equal(event.seq, row.seq + 1, at)
    assert.equal(event.from, row.seq === 0 ? null : row.state, at)
    assert.ok(event.ts >= row.changedAt, `${at}: time goes back`)
    const to = event.to as TaskState
    if (row.seq === 0) assert.deepEqual([to, event.epoch], ['queued', 0], at)
    else if (event.from === to) {
      assert.ok(requests.includes(event.type), at)
      assert.equal(event.epoch, row.epoch, at)
    } else {
      const edge = edges.find(edge => edge.from === row.state && edge.to === to)
      assert.ok(edge, `${at} is not a move`)
      assert.equal(event.epoch, row.epoch + (edge.raisesEpoch ? 1 : 0), at)
      if (edge.opensRound) Object.assign(row, { round: row.round + 1, failures: 0, losses: 0, isCalledOff: false })
      row.epoch = event.epoch
      const after = [row.round, row.epoch, taskLifecycle.states[to].rank]
      assert.ok(isAbove(after, key), `${at} goes back: ${key} -> ${after}`)
      if (failed.includes(event.cause!)) row.failures += 1
      if (event.cause === 'lease_lost' && wasCharged(event)) row.losses += 1
      row.endedAt = isFinal(taskLifecycle, to) ? event.ts : null
      row.reasonCode = event.payload.reasonCode ?? null
    }
    if (event.type === 'task.cancel_requested') row.isCalledOff = true
    if (event.type === 'task.claimed')
      Object.assign(row, { owner: event.actor.replace('worker:', ''), startedAt: null })
    if (event.type === 'task.started') row.startedAt = event.ts
    Object.assign(row, { seq: event.seq, state: to, changedAt: event.ts })
  }
  return row
}

/**
 * If the task is retried, the event says whether the loss was charged. If the task ended by the loss, it was charged. If it
 * was cancelled, the loss of a running task was charged, because the babysitters of these tests are never blind.
 */
function wasCharged({ from, to, payload }: EventView): boolean {
  if (to === 'retrying') return payload.charged === true
  return to !== 'cancelled' || from === 'running'
}

function isAbove(one: readonly number[], other: readonly number[]): boolean {
  const at = one.findIndex((part, n) => part !== other[n])
  return at >= 0 && one[at]! > other[at]!
}

/** The fields of the view that follow from the events. */
function factsOf(view: TaskView): ReturnType<typeof replay> {
  const { id, state, seq, round, epoch, failures, losses, createdAt, changedAt, owner, startedAt, endedAt } = view
  return {
    ...{ id, state, seq, round, epoch, failures, losses, createdAt, changedAt, owner, startedAt, endedAt },
    isCalledOff: view.cancelRequestedAt !== null,
    reasonCode: view.deadLetter?.reasonCode ?? null,
  }
}

/** All tasks, read from the engine. */
export async function allTasks(engine: Engine): Promise<TaskView[]> {
  const all: TaskView[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await engine.tasks({ limit: 300, ...(cursor !== undefined && { cursor }) })
    all.push(...page.items)
    cursor = page.next
  }
  return all
}

async function eventsOf(engine: Engine, id: string): Promise<EventView[]> {
  const all: EventView[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await engine.taskEvents(id, { limit: 50, ...(cursor !== undefined && { cursor }) })
    all.push(...page.items)
    cursor = page.next
  }
  return all
}

/**
 * Replaying the events of each task gives exactly its row, whether they are read from the task or from the feed. There is
 * one per transition, and none goes back. Returns all of them.
 */
export async function checkReplay(engine: Engine): Promise<EventView[]> {
  const tasks = await allTasks(engine)
  const transitions = tasks.reduce((sum, { seq }) => sum + seq, 0)
  const feed = await wholeFeed(engine, transitions, 1000)
  const fed = new Map<string, EventView[]>()
  for (const event of feed) fed.set(event.entityId, [...(fed.get(event.entityId) ?? []), event])
  for (const task of tasks) {
    const events = await eventsOf(engine, task.id)
    assert.deepEqual(replay(events), factsOf(task))
    // The feed orders overlapping transactions by their beginning. The order of the events of one task is that of seq.
    const same = (fed.get(task.id) ?? []).sort((one, other) => one.seq - other.seq)
    assert.deepEqual(same, events, `the feed of ${task.id}`)
  }
  assert.equal(feed.length, transitions, 'one event per transition')
  assert.deepEqual(await engine.brokenRules(), [])
  return feed
}
