/**
 * Constraints and triggers that enforce a lifecycle table in the database.
 *
 * The complete test is in the trigger's WHEN clause, which the executor evaluates itself: a legal move never calls a
 * function, and a move that is not in the table fails its statement, whatever code wrote it. Each row carries its
 * events: CHECKs ensure that there is exactly one per seq and that the last one matches the row, and the trigger
 * ensures that earlier ones never change.
 */
import { compoundEdges, edgesOf, type Lifecycle, openingEdges, statesOf } from '../../kernel/lifecycle.ts'

export function lifecycleSql(table: Lifecycle): string {
  return constraints(table) + refuseFunction(table) + triggers(table)
}

function constraints(table: Lifecycle): string {
  const { entity } = table
  const rules: [string, string][] = [
    ['ended_iff_final', `(ended_at is not null) = (state in (${quoted(statesOf(table, 'final'))}))`],
    ['one_event_per_seq', 'cardinality(history) = seq'],
    [
      'last_event_is_the_row',
      `(history[seq]).state = state${isLeased(table) ? ' and (history[seq]).epoch = epoch' : ''}`,
    ],
  ]
  if (isLeased(table)) {
    rules.push(['lease_iff_held', `(lease_until is not null) = (state in (${quoted(statesOf(table, 'held'))}))`])
  }
  return rules
    .map(
      ([name, rule]) => `
alter table pawl.${entity} drop constraint if exists ${entity}_${name};
alter table pawl.${entity} add constraint ${entity}_${name} check ((${rule}) is true);`,
    )
    .join('')
}

function refuseFunction({ entity }: Lifecycle): string {
  return `
create or replace function pawl.refuse_${entity}_move() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    raise exception '${entity} %: it cannot begin as % with seq %', new.id, new.state, new.seq
      using errcode = 'check_violation', constraint = '${entity}_begins_legally';
  elsif tg_op = 'DELETE' then
    raise exception '${entity} %: it is % and cannot be deleted before it has ended', old.id, old.state
      using errcode = 'check_violation', constraint = '${entity}_ends_before_it_goes';
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
  when ((${legalMove(table)}) is not true)
  execute function pawl.refuse_${entity}_move();
create or replace trigger ${entity}_ends_before_it_goes before delete on pawl.${entity} for each row
  when (old.state not in (${quoted(statesOf(table, 'final'))}))
  execute function pawl.refuse_${entity}_move();
`
}

/** A new row has one event, or two if its insert also makes the first move. */
function legalBeginning(table: Lifecycle): string {
  const openings = openingEdges(table).map(
    ({ from, to }) => `new.seq = 2 and (new.history[1]).state = '${from}' and new.state = '${to}'`,
  )
  return [`new.seq = 1 and new.state in (${quoted(table.initial)})`, ...openings].join(' or ')
}

/**
 * The condition of a legal update: the same state with at most one new event; or a move of the table with its increase
 * of seq, round and epoch; or a compound path, recognized by seq + 2. Together with the ranks that the kernel checks
 * at load, this makes (round, epoch, rank) increase with every transition. No move leads to an unknown state, so none
 * can be reached. The most frequent cases come first. Earlier events are compared as bytes, which costs a tenth of
 * comparing them by value.
 */
function legalMove(table: Lifecycle): string {
  const leased = isLeased(table)
  const sameEpoch = leased ? ' and new.epoch = old.epoch' : ''
  const raisedEpoch = 'new.round = old.round and new.epoch = old.epoch + 1'
  const sameRound = `new.round = old.round${sameEpoch}`
  const edges = edgesOf(table)
  const conditions = [
    moveCondition(
      `new.seq = old.seq + 1 and ${raisedEpoch}`,
      edges.filter(edge => edge.raisesEpoch),
    ),
    ...(table.compound ?? []).map(({ via }) => {
      const path = compoundEdges(table).filter(edge => edge.via === via)
      const rise = `new.seq = old.seq + 2 and ${path[0]!.raisesEpoch ? raisedEpoch : sameRound}`
      return moveCondition(`${rise} and (new.history[old.seq + 1]).state = '${via}'`, path)
    }),
    `new.state = old.state and new.seq between old.seq and old.seq + 1 and ${sameRound}`,
    moveCondition(
      `new.seq = old.seq + 1 and ${sameRound}`,
      edges.filter(edge => !edge.opensRound && !edge.raisesEpoch),
    ),
    moveCondition(
      `new.seq = old.seq + 1 and new.round = old.round + 1${sameEpoch}`,
      edges.filter(edge => edge.opensRound),
    ),
  ]
  const some = conditions.filter(text => text !== '').join('\n    or ')
  return `new.id = old.id and record_image_eq(row(new.history[:old.seq]), row(old.history)) and (\n    ${some})`
}

function moveCondition(rise: string, edges: readonly { from: string; to: string }[]): string {
  if (edges.length === 0) return ''
  const sources = [...new Set(edges.map(edge => edge.from))]
  const arrows = sources.map(from => {
    const targets = new Set(edges.flatMap(edge => (edge.from === from ? [edge.to] : [])))
    return `old.state = '${from}' and new.state in (${quoted([...targets])})`
  })
  return `${rise} and (\n      ${arrows.join('\n      or ')})`
}

const isLeased = (table: Lifecycle) => statesOf(table, 'held').length > 0

function quoted(words: readonly string[]): string {
  return words.map(word => `'${word}'`).join(', ')
}
