/** An engine on a schema of its own with a stopped clock, its model, and the comparison of the two. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { Context } from '../../src/engine/context.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { noClaimHints } from '../../src/engine/tasks/claim-hints.ts'
import type { EventView } from '../../src/protocol/tasks/tasks.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { typed, workers } from './commands.ts'
import { isHeld, isOpen, type Model, type ModelTask, newModel, startedAt } from './model.ts'

export interface World extends Fresh {
  readonly model: Model
  readonly sessionIds: readonly string[]
  readonly syncIds: number[]
}

/** Opens a world, runs `live` in it, checks the rules, and closes it. */
export async function inWorld(live: (world: World) => Promise<void>): Promise<void> {
  const ends: (() => Promise<void>)[] = []
  const lifetime = { after: (end: () => Promise<void>) => void ends.push(end) }
  const opened = await fresh(lifetime as unknown as TestContext)
  try {
    // On a slow machine a hint may hide a task for a few seconds. The claims of the model are exact.
    Object.assign(opened.engine.context, { claimHints: noClaimHints } satisfies Partial<Context>)
    const { retry, ...settings } = typed
    const model = newModel(Date.UTC(2030, 0, 1), { typed: { ...settings, ...retry } as Model['types'][string] })
    const world = { ...opened, model, sessionIds: workers.map(() => randomUUID()), syncIds: workers.map(() => 0) }
    await setClock(world, model.clock)
    await world.engine.putTaskType('typed', typed)
    await live(world)
  } finally {
    for (const end of ends) await end()
  }
}

/** Stops the database's clock at a moment, the same as the model's. */
export async function setClock({ sql, model }: World, ms: number): Promise<void> {
  model.clock = ms
  await sql.script(`
    create or replace function pawl.clock() returns timestamptz language sql stable parallel safe as
      $$ select timestamptz '${new Date(ms).toISOString()}' $$`)
}

/** Every task's row must agree with the model. */
export async function compareRows({ sql, model }: World): Promise<void> {
  const rows = await sql<{ id: string }>`
    select v.id, v.queue, v.priority, v.state, v.seq, v.round, v.epoch, v.failures, v.losses, v.careful, v.partial,
           v.owner, v.payload, v.output, v.progress, v.checkpoint, v.error->>'message' as error,
           v.dead_letter->>'reasonCode' as reason_code, v.run_at, v.lease_until, v.started_at, v.ended_at, v.expire_at,
           v.changed_at, case when v.lease_until is not null then v.cancel_at end as cancel_at,
           t.dedupe_slot is not null and t.ended_at is null as stands_for_key
      from pawl.task_view v join pawl.task t using (id)
     order by v.id`
  const foretold = [...model.tasks.values()].map(rowOf).sort((a, b) => (a.id < b.id ? -1 : 1))
  assert.deepEqual(rows, foretold)
}

function rowOf(task: ModelTask) {
  const { id, queue, priority, state, seq, round, epoch, failures, losses, careful, partial, owner, payload } = task
  const { output, progress, checkpoint, error, reasonCode } = task
  const date = (ms: number | null) => (ms === null ? null : new Date(ms))
  return {
    ...{ id, queue, priority, state, seq, round, epoch, failures, losses, careful, partial, owner, payload },
    ...{ output, progress, checkpoint, error, reasonCode },
    runAt: date(task.runAt),
    leaseUntil: date(task.leaseUntil),
    startedAt: date(startedAt(task)),
    endedAt: date(task.endedAt),
    expireAt: date(task.expireAt),
    changedAt: date(task.events.at(-1)!.ts),
    cancelAt: isHeld(task) ? date(task.cancelAt) : null,
    standsForKey: task.key !== undefined && task.endedAt === null,
  }
}

/** Every event of every task, from the task and from the feed; depths, pulses and the integrity queries. */
export async function compareHistories({ engine, sql, model }: World): Promise<void> {
  const tasks = [...model.tasks.values()]
  const foretold = new Map(tasks.map(task => [task.id, eventsOf(task)]))
  for (const { id } of tasks) {
    const { items } = await engine.taskEvents(id)
    assert.deepEqual(items.map(plain), foretold.get(id), `events of ${id}`)
  }
  const events = await wholeFeed(
    engine,
    tasks.reduce((sum, { seq }) => sum + seq, 0),
  )
  assert.deepEqual(grouped(events), foretold)

  const [pulses] = await sql<{ n: number }>`select count(*) as n from pawl.pulse`
  assert.equal(pulses!.n, model.beats)
  for (const { queue, due, scheduled, held } of (await engine.queues()).items) {
    const inQueue = tasks.filter(task => task.queue === queue)
    const open = inQueue.filter(isOpen)
    const isDue = open.filter(({ runAt }) => runAt <= model.clock).length
    const isLeased = inQueue.filter(isHeld).length
    assert.deepEqual({ due, scheduled, held }, { due: isDue, scheduled: open.length - isDue, held: isLeased }, queue)
  }
  assert.deepEqual(await engine.brokenRules(), [])
}

type PlainEvent = ReturnType<typeof plain>

function plain({ seq, type, from, to, epoch, ts, actor, cause, payload }: EventView) {
  return { seq, type, from, to, epoch, ts, actor, cause, payload }
}

function eventsOf({ events }: ModelTask): PlainEvent[] {
  return events.map(event => plain({ ...event, ts: new Date(event.ts).toISOString() } as unknown as EventView))
}

function grouped(events: readonly EventView[]): Map<string, PlainEvent[]> {
  const byTask = new Map<string, PlainEvent[]>()
  for (const event of events) {
    const list = byTask.get(event.entityId) ?? []
    byTask.set(event.entityId, list)
    list.push(plain(event))
  }
  return byTask
}

/**
 * Reads this number of events of the feed from its start, in pages that cut through statements. The feed ends before the
 * oldest running transaction, which may belong to another test on the server, so it is read again for a while.
 */
export async function wholeFeed(
  { events }: Pick<Engine, 'events'>,
  expected: number,
  limit = 37,
): Promise<EventView[]> {
  const all: EventView[] = []
  const deadline = performance.now() + 30_000
  for (let cursor: string | undefined; ; ) {
    const page = await events({ limit, ...(cursor !== undefined && { cursor }) })
    cursor = page.next
    all.push(...page.items.map(({ cursor: _, ...event }) => event))
    if (page.items.length > 0) continue
    if (all.length >= expected || performance.now() > deadline) return all
    await pause(20)
  }
}
