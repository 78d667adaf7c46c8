/**
 * Tries every pair of states, not only the transitions: the database must allow exactly the transitions of the kernel's
 * tables, and refuse all others.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import {
  insertText,
  isLeased,
  moveText,
  placeRow,
  placeRows,
  type Row,
  stepText,
} from '../../../test/harness/row-in.ts'
import { newId } from '../../kernel/id.ts'
import { isFinal, type Lifecycle, statesOf } from '../../kernel/lifecycle.ts'
import { lifecycles } from '../../kernel/lifecycles.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import type { Sql } from '../driver/sql.ts'

/** Tries statements one by one and rolls each back. Returns `allowed`, or the name of the rule that refused it. */
async function attempts(sql: Sql, texts: readonly string[]): Promise<string[]> {
  const named = texts.map(text => text.replaceAll('pawl.', `"${sql.schema}".`))
  const rows = await sql<{ verdict: string }>`
    select pawl.attempt(text) as verdict from unnest(${named}::text[]) with ordinality as t (text, n) order by n`
  return rows.map(({ verdict }) => verdict)
}

async function freshDatabase(t: TestContext): Promise<Sql> {
  const { sql } = await fresh(t, { rules: 'broken on purpose' })
  await sql.script(`
    create function pawl.attempt(statement text) returns text language plpgsql as $$
    declare
      rule text;
      touched integer;
    begin
      execute statement;
      get diagnostics touched = row_count;
      if touched <> 1 then return 'touched ' || touched; end if;
      raise exception 'undo' using errcode = 'ZZ000';
    exception
      when sqlstate 'ZZ000' then return 'allowed';
      when check_violation then
        get stacked diagnostics rule = constraint_name;
        return rule;
    end $$`)
  return sql
}

interface Try {
  readonly from: Row
  readonly to: Row
  /** The states of the events that it adds. The last one is that of the row. */
  readonly events: readonly string[]
}

/** Every change of state, seq, round and epoch that could be made by mistake. */
function* tries(table: Lifecycle, from: Row): Generator<Try> {
  const states = statesOf(table)
  for (const state of states) {
    for (const round of [-1, 0, 1]) {
      for (const epoch of isLeased(table) ? [-1, 0, 1, 2] : [0]) {
        const isStill = round === 0 && epoch === 0
        // Two events at once: through every state in between, and through the right one with every increase.
        const vias = isStill || (round === 0 && epoch === 1) ? states : [table.compound?.[0]?.via ?? state]
        for (const events of [[], [state], ...vias.map(via => [via, state])]) {
          const rise = { seq: from.seq + events.length, round: from.round + round, epoch: from.epoch + epoch }
          yield { from, to: { ...from, state, ...rise }, events }
        }
      }
    }
  }
}

const nameOf = ({ from, to, events }: Try) =>
  `${[from.state, ...events].join(' -> ')} as ${to.state}, round + ${to.round - from.round}, epoch + ${to.epoch - from.epoch}`

/** Derived from the transitions themselves, not with the helpers that create the guards. */
function isLegal(table: Lifecycle, { from, to, events }: Try): boolean {
  const rise = { round: to.round - from.round, epoch: to.epoch - from.epoch }
  const isStill = rise.round === 0 && rise.epoch === 0
  if (to.state === from.state && isStill && events.length <= 1) return true
  const moves = Object.values(table.moves)
  if (events.length === 1) {
    return moves.some(
      move =>
        move.from.includes(from.state) &&
        [move.to].flat().includes(to.state) &&
        rise.round === (move.opensRound ? 1 : 0) &&
        rise.epoch === (move.raisesEpoch ? 1 : 0),
    )
  }
  if (events.length !== 2 || rise.round !== 0) return false
  const path = table.compound?.find(({ from: sources, via }) => sources.includes(from.state) && via === events[0])
  const first = moves.find(move => move.from.includes(from.state) && [move.to].flat().includes(events[0]!))
  const mayEndSo = moves.some(
    move =>
      move.from.includes(events[0]!) &&
      [move.to].flat().includes(to.state) &&
      (path?.to !== undefined || move.by.includes('worker')),
  )
  const isEndOf = path?.to?.includes(to.state) ?? path !== undefined
  return isEndOf && mayEndSo && rise.epoch === (first?.raisesEpoch ? 1 : 0)
}

for (const table of lifecycles) {
  const { entity } = table
  const an = entity === 'artifact' ? 'an artifact' : `a ${entity}`
  const states = statesOf(table)

  test(`the database allows ${an} the moves of its lifecycle, and no others`, async t => {
    const sql = await freshDatabase(t)
    const rows = await placeRows(sql, table, states)
    const all = rows.flatMap(row => [...tries(table, row)])
    const verdicts = await attempts(
      sql,
      all.map(({ to, events }) => {
        const added = events.map(state => stepText({ state, epoch: to.epoch }))
        return moveText(to, `history || array[${added.join(', ')}]::pawl.step[]`)
      }),
    )
    const named = (isAllowed: (index: number) => boolean) =>
      all.flatMap((one, index) => (isAllowed(index) ? [nameOf(one)] : []))
    assert.deepEqual(
      named(index => verdicts[index] === 'allowed'),
      named(index => isLegal(table, all[index]!)),
    )
    const refusals = new Set(verdicts.filter(verdict => verdict !== 'allowed'))
    for (const rule of refusals) assert.match(rule, new RegExp(`^${entity}_`), 'refused for another reason')
  })

  test(`${an} begins only as new, and goes only when it has ended`, async t => {
    const sql = await freshDatabase(t)
    const rows = await placeRows(sql, table, states)
    const fresh = (state: string) => ({ table, id: newId(), state, seq: 1, round: 1, epoch: 0 })
    const begun = await attempts(
      sql,
      states.map(state => insertText(fresh(state))),
    )
    const begins = states.filter((_, index) => begun[index] === 'allowed')
    assert.deepEqual(begins.sort(), [...table.initial].sort())
    const openings = table.initial.flatMap(from => states.map(to => ({ from, to })))
    const opened = await attempts(
      sql,
      openings.map(({ from, to }) =>
        insertText(
          { ...fresh(to), seq: 2 },
          `array[${stepText({ state: from, epoch: 0 })}, ${stepText({ state: to, epoch: 0 })}]`,
        ),
      ),
    )
    const opens = openings.flatMap(({ to }, index) => (opened[index] === 'allowed' ? [to] : []))
    assert.deepEqual(opens, [...(table.opening ?? [])], 'the first moves that an insert may make')
    const first = fresh(table.initial[0]!)
    const twoEvents = `array[${stepText(first)}, ${stepText(first)}]`
    const odd = [
      insertText({ ...first, seq: 2 }, twoEvents),
      insertText({ ...first, round: 2 }),
      ...(isLeased(table) ? [insertText({ ...first, epoch: 1 })] : []),
    ]
    for (const verdict of await attempts(sql, odd)) assert.equal(verdict, `${entity}_begins_legally`)
    const gone = await attempts(
      sql,
      rows.map(({ id }) => `delete from pawl.${entity} where id = '${id}'`),
    )
    const goes = states.filter((_, index) => gone[index] === 'allowed')
    assert.deepEqual(goes, statesOf(table, 'final'))
  })

  test(`what happened to ${an} is written down once and stays as it was`, async t => {
    const sql = await freshDatabase(t)
    const [first, second] = table.initial[0] === 'queued' ? ['assigned', 'running'] : middleOf(table)
    const row = await placeRow(sql, table, first)
    const next: Row = { ...row, state: second, seq: row.seq + 1 }
    const step = stepText(next)
    const altered = stepText({ state: table.initial[0]!, epoch: 0 }, `'{"by": "hand"}'`)
    const changed = `array[${altered}] || history[2:]`
    const refused = {
      'a second event for a seq': moveText(next, `history || array[${step}, ${step}]`),
      'a move without its event': moveText(next, 'history'),
      'a move without a rise of seq': moveText({ ...next, seq: row.seq }, 'history'),
      'an event without a rise of seq': moveText(row, `history || ${stepText(row)}`),
      'an event that says something else': moveText(next, `history || ${stepText(row)}`),
      'an event that says nothing': moveText(
        next,
        'history || row(null, null, null, null, null, null, null)::pawl.step',
      ),
      'a changed event, in a move': moveText(next, `${changed} || ${step}`),
      'a changed event, in a request': moveText({ ...row, seq: next.seq }, `${changed} || ${stepText(row)}`),
      'a changed event, by itself': moveText(row, changed),
      'a removed event': moveText({ ...row, seq: row.seq - 1 }, 'history[2:]'),
      'an event that is replaced': moveText(next, `history[2:] || array[${step}, ${step}]`),
      'a change of id': `update pawl.${entity} set id = gen_random_uuid() where id = '${row.id}'`,
      'a state that does not exist': moveText(next, `history || ${step}`).replaceAll(`'${second}'`, `'gone'`),
    }
    const verdicts = await attempts(sql, [moveText(next, `history || ${step}`), ...Object.values(refused)])
    assert.equal(verdicts[0], 'allowed', 'the honest move')
    for (const [index, name] of Object.keys(refused).entries()) {
      assert.match(verdicts[index + 1]!, new RegExp(`^${entity}_`), `${name}: ${verdicts[index + 1]}`)
    }
  })
}

test('a lease lasts exactly as long as a task is held, and an end as long as it has ended', async t => {
  const sql = await freshDatabase(t)
  const rows = await placeRows(sql, taskLifecycle, statesOf(taskLifecycle))
  for (const row of rows) {
    const { kind } = taskLifecycle.states[row.state as 'queued']
    const set = (column: string, value: string) => `update pawl.task set ${column} = ${value} where id = '${row.id}'`
    const verdicts = await attempts(sql, [
      set('lease_until', kind === 'held' ? 'null' : 'pawl.clock()'),
      set('ended_at', isFinal(taskLifecycle, row.state as 'queued') ? 'null' : 'pawl.clock()'),
    ])
    assert.deepEqual(verdicts, ['task_lease_iff_held', 'task_ended_iff_final'], row.state)
  }
})

test('a start that is passed over must be told as what it was', async t => {
  const sql = await freshDatabase(t)
  const row = await placeRow(sql, taskLifecycle, 'assigned')
  const ended: Row = { ...row, state: 'succeeded', seq: row.seq + 2 }
  const end = stepText(ended)
  const say = (step: string) => moveText(ended, `history || array[${step}, ${end}]`)
  const verdicts = await attempts(sql, [
    say(stepText({ state: 'running', epoch: 1 })),
    say(stepText({ state: 'queued', epoch: 1 })),
    say('row(null, null, null, null, null, null, null)::pawl.step'),
    say('null::pawl.step'),
  ])
  assert.deepEqual(verdicts, ['allowed', 'task_moves_legally', 'task_moves_legally', 'task_moves_legally'])
})

/**
 * Two states with a transition between them that changes neither round nor epoch. The first is not an initial state.
 */
function middleOf(table: Lifecycle): [string, string] {
  for (const { from, to, opensRound } of Object.values(table.moves)) {
    const first = from.find(state => !table.initial.includes(state))
    if (first !== undefined && !opensRound) return [first, [to].flat()[0]!]
  }
  throw new Error(`${table.entity} has no middle`)
}
