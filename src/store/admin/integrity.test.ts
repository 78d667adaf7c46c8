/** Every rule finds its fault, once the guards that prevent the fault are removed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import { placeRows } from '../../../test/harness/row-in.ts'
import { everyState, taskIn } from '../../../test/harness/task-in.ts'
import { type Lifecycle, statesOf } from '../../kernel/lifecycle.ts'
import { lifecycles } from '../../kernel/lifecycles.ts'
import type { TaskState } from '../../kernel/task.ts'
import type { Sql } from '../driver/sql.ts'
import { type BrokenRule, brokenRules, type Watch } from './integrity.ts'

const moves = 'I3 I4 I6 events are moves that go forward, and replay to the row'
const replay = 'I4 events replay to the row'
const feed = 'I4 the feed has every event once'
const place = 'a task that may be claimed has its place in the queue'
const watched = 'a task that is held is watched'
const trouble = 'a task that ended badly is in trouble, and no other'
const lane = 'every task stands in a lane'

interface Fault {
  readonly name: string
  /** The state of the task with the fault. */
  readonly in: TaskState
  /** SQL; `:id` is the task. */
  readonly sql: string
  readonly breaks: readonly string[]
}

/** Sets fields of the event with this number. */
const event = (n: number, fields: string) =>
  `update pawl.task set ${fields
    .split(', ')
    .map(field => `history[${n}].${field}`)
    .join(', ')} where id = :id`
const set = (fields: string) => `update pawl.task set ${fields} where id = :id`
const step = (state: string, epoch: number, type = 'null') =>
  `row(pawl.clock(), ${epoch}, '${state}', ${type}, 'test', 'test', null)::pawl.step`

const faults: readonly Fault[] = [
  { name: 'it began as something else', in: 'succeeded', sql: event(1, `state = 'retrying'`), breaks: [moves] },
  { name: 'it began with an epoch', in: 'succeeded', sql: event(1, `epoch = 1`), breaks: [moves] },
  { name: 'an event is no move', in: 'succeeded', sql: event(3, `state = 'retrying'`), breaks: [moves] },
  { name: 'an event says nothing', in: 'succeeded', sql: event(3, `state = null`), breaks: [moves] },
  { name: 'an event has no epoch', in: 'succeeded', sql: event(3, `epoch = null`), breaks: [moves] },
  { name: 'a claim raised no epoch', in: 'succeeded', sql: event(2, `epoch = 0`), breaks: [moves] },
  { name: 'an epoch fell', in: 'succeeded', sql: event(3, `epoch = 0`), breaks: [moves] },
  {
    name: 'an epoch was passed over',
    in: 'assigned',
    sql: `${event(2, 'epoch = 2')}; ${set('epoch = 2')}`,
    breaks: [moves, watched],
  },
  {
    name: 'an event lies before the one before it',
    in: 'succeeded',
    sql: event(3, `ts = '2001-01-01'`),
    breaks: [moves],
  },
  {
    name: 'a request does not say what was asked',
    in: 'failed',
    sql: set(`seq = seq + 1, history = history || ${step('failed', 1)}`),
    breaks: [moves, feed],
  },
  {
    name: 'an event is missing in the middle',
    in: 'succeeded',
    sql: set('seq = seq - 1, history = history[:2] || history[4:]'),
    breaks: [moves, feed],
  },
  { name: 'the last event is missing', in: 'succeeded', sql: set('history = history[:3]'), breaks: [replay] },
  {
    name: 'there is an event too many',
    in: 'succeeded',
    sql: set(`history = history || ${step('succeeded', 1, `'task.asked'`)}`),
    breaks: [replay],
  },
  { name: 'the row is in another state', in: 'succeeded', sql: set(`state = 'skipped'`), breaks: [replay] },
  { name: 'the row has another epoch', in: 'succeeded', sql: set('epoch = 7'), breaks: [replay] },
  { name: 'the row has another round', in: 'succeeded', sql: set('round = 2'), breaks: [replay] },
  {
    name: 'the feed misses an event',
    in: 'succeeded',
    sql: 'delete from pawl.change where :id = any(ids) and 2 = any(seqs)',
    breaks: [feed],
  },
  {
    name: 'the feed has an event twice',
    in: 'succeeded',
    sql: `insert into pawl.change (entity, ids, seqs) values ('task', array[:id], array[2])`,
    breaks: [feed],
  },
  {
    name: 'the feed has one in place of another',
    in: 'queued',
    sql: 'update pawl.change set seqs = array[2] where :id = any(ids)',
    breaks: [feed],
  },
  {
    name: 'the feed has nothing of it',
    in: 'queued',
    sql: 'delete from pawl.change where :id = any(ids)',
    breaks: [feed],
  },
  {
    name: 'it may be claimed and is in no queue',
    in: 'queued',
    sql: 'delete from pawl.due where :id = any(ids)',
    breaks: [place],
  },
  {
    name: 'it waits for its retry in no queue',
    in: 'retrying',
    sql: 'delete from pawl.due where :id = any(ids)',
    breaks: [place],
  },
  {
    name: 'it may be claimed twice',
    in: 'queued',
    sql: 'insert into pawl.due select * from pawl.due where :id = any(ids)',
    breaks: [place],
  },
  {
    name: 'its place is another time',
    in: 'queued',
    sql: `update pawl.due set run_at = run_at + interval '1 s' where :id = any(ids)`,
    breaks: [place],
  },
  {
    name: 'its place is in another lane',
    in: 'queued',
    sql: 'update pawl.due set lane_id = -1 where :id = any(ids)',
    breaks: [place],
  },
  {
    name: 'it may be claimed while it is held',
    in: 'running',
    sql: `insert into pawl.due (lane_id, run_at, id, ids, type) select lane_id, run_at, id, array[id], type from pawl.task where id = :id`,
    breaks: [place],
  },
  {
    name: 'nobody watches its lease',
    in: 'assigned',
    sql: 'delete from pawl.claim where :id = any(ids)',
    breaks: [watched],
  },
  {
    name: 'only an earlier lease is watched',
    in: 'running',
    sql: 'update pawl.claim set epochs = array[0] where :id = any(ids)',
    breaks: [watched],
  },
  {
    name: 'it ended badly and nobody sees it',
    in: 'dead_lettered',
    sql: 'delete from pawl.trouble where task_id = :id',
    breaks: [trouble],
  },
  {
    name: 'it is seen as something else',
    in: 'failed',
    sql: `update pawl.trouble set state = 'expired' where task_id = :id`,
    breaks: [trouble],
  },
  {
    name: 'it ended well and is in trouble',
    in: 'succeeded',
    sql: `insert into pawl.trouble (task_id, state) values (:id, 'failed')`,
    breaks: [trouble],
  },
  {
    name: 'it is gone and its trouble stayed',
    in: 'failed',
    sql: 'delete from pawl.task where id = :id',
    breaks: [trouble],
  },
  {
    name: 'its lane is gone',
    in: 'succeeded',
    sql: 'delete from pawl.lane using pawl.task t where t.id = :id and lane.id = t.lane_id',
    breaks: [lane],
  },
]

const undo = new Error('undo')

/** Returns the broken rules after a fault, which is then undone. */
async function foundAfter(sql: Sql, fault: string, watch?: Watch): Promise<BrokenRule[]> {
  let found: BrokenRule[] = []
  const trying = sql.begin(async tx => {
    await tx.script(`${lifecycles.map(withoutGuards).join('')} ${fault}`)
    found = await brokenRules(tx, watch)
    throw undo
  })
  await assert.rejects(trying, undo)
  return found
}

function withoutGuards({ entity }: Lifecycle): string {
  const rules = ['ended_iff_final', 'one_event_per_seq', 'last_event_is_the_row', 'lease_iff_held']
  const drops = rules.map(rule => `drop constraint if exists ${entity}_${rule}`)
  return `alter table pawl.${entity} disable trigger all; alter table pawl.${entity} ${drops.join(', ')};`
}

test('a healthy store breaks no rule, whatever states its tasks are in', async t => {
  const store = await fresh(t)
  for (const state of everyState) await taskIn(store, state)
  const { id } = await taskIn(store, 'dead_lettered')
  await store.engine.redrive({ ids: [id], payload: 'mended' })
  await store.engine.cancel((await taskIn(store, 'running')).id)
  assert.deepEqual(await brokenRules(store.sql), [])
})

test('a fault in a task is found, and by the rule that is there for it', async t => {
  const store = await fresh(t)
  const ids = new Map<string, string>()
  for (const state of everyState) ids.set(state, (await taskIn(store, state)).id)
  for (const fault of faults) {
    const id = ids.get(fault.in)!
    const found = await foundAfter(store.sql, fault.sql.replaceAll(':id', `'${id}'::uuid`))
    const rules = [...new Set(found.map(({ rule }) => rule))]
    assert.deepEqual(rules.sort(), [...fault.breaks].sort(), `${fault.name}: ${JSON.stringify(found)}`)
    assert.deepEqual([...new Set(found.map(({ entityId }) => entityId))], [id], fault.name)
  }
})

test('a fault in any entity is found, and nothing is found in sound ones', async t => {
  const { sql } = await fresh(t, { rules: 'broken on purpose' })
  for (const table of lifecycles.filter(({ entity }) => entity !== 'task')) {
    const [row, other] = await placeRows(sql, table, statesOf(table).slice(-2))
    await sql.script(`
        insert into pawl.change (entity, ids, seqs)
        select '${table.entity}', array_agg(id), array_agg(nth) from pawl.${table.entity}, generate_series(1, seq) as nth`)
    assert.deepEqual(await brokenRules(sql), [], table.entity)
    const broken = (fields: string) => `update pawl.${table.entity} set ${fields} where id = '${row!.id}'`
    for (const [fault, rule] of [
      [broken('round = round + 1'), replay],
      [broken(`state = '${table.initial[0]}'`), replay],
      [broken('history[1].epoch = 3'), moves],
      [broken(`history[2].state = '${other!.state}', history[1].state = '${other!.state}'`), moves],
    ] as const) {
      const found = await foundAfter(sql, fault)
      assert.ok(
        found.some(one => one.rule === rule && one.entityId === row!.id),
        `${fault}: ${JSON.stringify(found)}`,
      )
      assert.ok(found.every(one => one.entityId === row!.id))
    }
  }
})

test('the alarm looks only at what is new, and finds a fault there', async t => {
  const store = await fresh(t, { database: 'embedded' })
  const [old, recent] = [await taskIn(store, 'queued'), await taskIn(store, 'queued')]
  const unplaced = 'delete from pawl.due'
  const entities = async (watch?: Watch) =>
    (await foundAfter(store.sql, unplaced, watch)).map(({ entityId }) => entityId)
  assert.deepEqual((await entities()).sort(), [old.id, recent.id])
  assert.deepEqual(await entities({ since: new Date(0), from: recent.id, until: recent.id }), [recent.id])
})
