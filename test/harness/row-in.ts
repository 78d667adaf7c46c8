/** Creates rows of any lifecycle in a given state, with the moves of its table, in plain SQL. */
import { newId } from '../../src/kernel/id.ts'
import { type Edge, edgesOf, type Lifecycle } from '../../src/kernel/lifecycle.ts'
import type { Sql } from '../../src/store/driver/sql.ts'

export interface Row {
  readonly table: Lifecycle
  readonly id: string
  readonly state: string
  readonly seq: number
  readonly round: number
  readonly epoch: number
}

/** Further required columns of each entity's row. `pawl.lane` has one lane, created by `placeRows`. */
const ownColumns: Record<string, [names: string, values: string]> = {
  task: ['lane_id, run_at, type, payload', `(select min(id) from pawl.lane), pawl.clock(), 'test', '{}'`],
  stage: ['job_id, name', `gen_random_uuid(), 'test'`],
  job: ['name', `'test'`],
  artifact: ['task_id, uri', `gen_random_uuid(), 'file:///test'`],
}

export const isLeased = (table: Lifecycle) => table.entity === 'task'

/** One row for each state, brought there by the fewest moves. */
export async function placeRows(sql: Sql, table: Lifecycle, states: readonly string[]): Promise<Row[]> {
  const texts = [`insert into pawl.lane (queue, priority) values ('test', 0) on conflict do nothing;`]
  const rows = states.map(state => {
    const path = pathTo(table, state)
    let row: Row = { table, id: newId(), state: path.first, seq: 1, round: 1, epoch: 0 }
    texts.push(insertText(row))
    for (const { to, opensRound, raisesEpoch } of path.edges) {
      const [round, epoch] = [row.round + Number(opensRound), row.epoch + Number(raisesEpoch)]
      const next: Row = { ...row, state: to, seq: row.seq + 1, round, epoch }
      texts.push(moveText(next, `history || ${stepText(next)}`))
      row = next
    }
    return row
  })
  await sql.script(texts.map(text => `${text};`).join('\n'))
  return rows
}

export async function placeRow(sql: Sql, table: Lifecycle, state: string): Promise<Row> {
  const [row] = await placeRows(sql, table, [state])
  return row!
}

/** One event, as a value of SQL. */
export function stepText({ state, epoch }: { state: string; epoch: number }, payload = 'null'): string {
  return `row(pawl.clock(), ${epoch}, '${state}', null, 'test', 'test', ${payload})::pawl.step`
}

export function insertText(row: Row, history = `array[${stepText(row)}]`): string {
  const { entity } = row.table
  const [names, values] = ownColumns[entity]!
  const columns = Object.entries(columnsOf(row))
  return `insert into pawl.${entity} (id, ${names}, ${columns.map(([name]) => name).join(', ')}, history)
    values ('${row.id}', ${values}, ${columns.map(([, value]) => value).join(', ')}, ${history})`
}

/** Sets the columns of the row and its history to these values, whether that is legal or not. */
export function moveText(row: Row, history: string): string {
  const sets = Object.entries({ ...columnsOf(row), history }).map(([name, value]) => `${name} = ${value}`)
  return `update pawl.${row.table.entity} set ${sets.join(', ')} where id = '${row.id}'`
}

/** Leases and ends are as required, so that only the move itself is tested. */
function columnsOf({ table, state, seq, round, epoch }: Row): Record<string, string | number> {
  const { kind } = table.states[state]!
  return {
    state: `'${state}'`,
    seq,
    round,
    ended_at: kind === 'final' ? 'pawl.clock()' : 'null',
    ...(isLeased(table) && { epoch, lease_until: kind === 'held' ? 'pawl.clock()' : 'null' }),
  }
}

function pathTo(table: Lifecycle, state: string): { first: string; edges: Edge[] } {
  const paths = new Map<string, { first: string; edges: Edge[] }>(
    table.initial.map(first => [first, { first, edges: [] }]),
  )
  for (const [at, { first, edges }] of paths) {
    for (const edge of edgesOf(table)) {
      if (edge.from === at && !paths.has(edge.to)) paths.set(edge.to, { first, edges: [...edges, edge] })
    }
  }
  return paths.get(state)!
}
