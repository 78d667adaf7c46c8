/**
 * Constraints and triggers that enforce a lifecycle table in the database.
 *
 * A move that is not in the table fails its statement, whatever code wrote it. Each row carries its events: CHECKs ensure
 * that there is exactly one per seq and that the last one matches the row, and the trigger ensures that earlier ones never
 * change.
 *
 * The trigger's WHEN clause accepts the frequent moves, which the executor tests itself, and its function accepts all
 * others. PostgreSQL reads a WHEN clause and a CHECK from text for each statement: with all moves in it, this took a fifth
 * of the time of a statement about one task. A function is read once per connection.
 */
import { compoundEdges, edgesOf, type Lifecycle, openingEdges, type State, statesOf } from '../../kernel/lifecycle.ts'

export function lifecycleSql(table: Lifecycle): string {
  return constraints(table) + refuseFunction(table) + triggers(table)
}

function constraints(table: Lifecycle): string {
  const { entity } = table
  const rules: [string, string][] = [
    ['ended_iff_final', `(ended_at is not null) = (${isOneOf('state', statesOf(table, 'final'))})`],
    ['one_event_per_seq', 'cardinality(history) = seq'],
    [
      'last_event_is_the_row',
      `(history[seq]).state = state${isLeased(table) ? ' and (history[seq]).epoch = epoch' : ''}`,
    ],
  ]
  if (isLeased(table)) {
    rules.push(['lease_iff_held', `(lease_until is not null) = (${isOneOf('state', statesOf(table, 'held'))})`])
  }
  return rules
    .map(
      ([name, rule]) => `
alter table pawl.${entity} drop constraint if exists ${entity}_${name};
alter table pawl.${entity} add constraint ${entity}_${name} check ((${rule}) is true);`,
    )
    .join('')
}

/** Refuses a move unless it is legal. */
function refuseFunction(table: Lifecycle): string {
  const { entity } = table
  return `
create or replace function pawl.refuse_${entity}_move() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    raise exception '${entity} %: it cannot begin as % with seq %', new.id, new.state, new.seq
      using errcode = 'check_violation', constraint = '${entity}_begins_legally';
  elsif tg_op = 'DELETE' then
    raise exception '${entity} %: it is % and cannot be deleted before it has ended', old.id, old.state
      using errcode = 'check_violation', constraint = '${entity}_ends_before_it_goes';
  elsif ${legalMove(table, legalMoves(table))} then
    return null;
  end if;
  raise exception '${entity} %: % -> % with seq % -> % is not a move', old.id, old.state, new.state, old.seq, new.seq
    using errcode = 'check_violation', constraint = '${entity}_moves_legally';
end $$;`
}

function triggers(table: Lifecycle): string {
  const { entity } = table
  const epoch = isLeased(table) ? ' and new.epoch = 0' : ''
  return `
create or replace trigger ${entity}_begins_legally before insert on pawl.${entity} for each row
  when ((new.round = 1${epoch} and (${legalBeginning(table)})) is not true)
  execute function pawl.refuse_${entity}_move();
create or replace trigger ${entity}_moves_legally after update on pawl.${entity} for each row
  ${isLeased(table) ? `when ((${legalMove(table, frequentMoves(table))}) is not true)` : ''}
  execute function pawl.refuse_${entity}_move();
create or replace trigger ${entity}_ends_before_it_goes before delete on pawl.${entity} for each row
  when ((${isOneOf('old.state', statesOf(table, 'final'))}) is not true)
  execute function pawl.refuse_${entity}_move();
`
}

/** A new row has one event, or two if its insert also makes the first move. */
function legalBeginning(table: Lifecycle): string {
  const openings = openingEdges(table).map(
    ({ from, to }) => `new.seq = 2 and (new.history[1]).state = '${from}' and new.state = '${to}'`,
  )
  return [`new.seq = 1 and ${isOneOf('new.state', table.initial)}`, ...openings].join(' or ')
}

/**
 * The condition of a legal update: earlier events stay as they are, and the move is one of these. Together with the ranks
 * that the kernel checks at load, this makes (round, epoch, rank) increase with every transition. No move leads to an
 * unknown state, so none can be reached. Events are compared as bytes, which costs a tenth of comparing them by value.
 */
function legalMove(table: Lifecycle, moves: readonly string[]): string {
  const rises = [...risesOf(table)].map(column => `new.${column} - old.${column}`)
  const move = ['old.state', '(new.history[old.seq + 1]).state', 'new.state', ...rises].join(', ')
  return `new.id = old.id and record_image_eq(row(new.history[:old.seq]), row(old.history))
    and ${isOneOf(`concat_ws(' ', ${move})`, moves)}`
}

/**
 * The updates that the table allows: the state before, that of the first new event, the state after, and by how much
 * seq, round and epoch increase. `queued assigned assigned 1 0 1` is a claim. A compound path has two events. An update
 * that keeps the state has one event or none.
 */
function legalMoves(table: Lifecycle, isMeant: (state: string) => boolean = () => true): string[] {
  const move = (states: string, rise: { seq: number; round?: boolean; epoch?: boolean }) =>
    [states, ...risesOf(table).map(column => Number(rise[column] ?? 0))].join(' ')
  const moves = [
    ...edgesOf(table).map(({ from, to, opensRound, raisesEpoch }) => ({
      to,
      text: move(`${from} ${to} ${to}`, { seq: 1, round: opensRound, epoch: raisesEpoch }),
    })),
    ...compoundEdges(table).map(({ from, via, to, raisesEpoch }) => ({
      to,
      text: move(`${from} ${via} ${to}`, { seq: 2, epoch: raisesEpoch }),
    })),
    ...statesOf(table).flatMap(state => [
      { to: state, text: move(`${state} ${state}`, { seq: 0 }) },
      { to: state, text: move(`${state} ${state} ${state}`, { seq: 1 }) },
    ]),
  ]
  return [...new Set(moves.flatMap(({ to, text }) => (isMeant(to) ? [text] : [])))]
}

const risesOf = (table: Lifecycle) => ['seq', 'round', ...(isLeased(table) ? ['epoch' as const] : [])] as const

/**
 * Claims, starts, heartbeats and successes are written in large batches, and must not call a function for each row.
 * Empty for tables that have no such moves.
 */
function frequentMoves(table: Lifecycle): string[] {
  const states: Readonly<Record<string, State>> = table.states
  return legalMoves(table, to => isLeased(table) && (states[to]!.kind === 'held' || states[to]!.outcome === 'good'))
}

const isLeased = (table: Lifecycle) => statesOf(table, 'held').length > 0

/** An array constant is much shorter than the list of `in (…)` in the text that PostgreSQL keeps of a condition. */
function isOneOf(value: string, words: readonly string[]): string {
  return words.length === 1 ? `${value} = '${words[0]}'` : `${value} = any ('{${words.join(', ')}}')`
}
