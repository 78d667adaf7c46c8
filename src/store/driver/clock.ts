import { type Literal, literal, type Sql } from './sql.ts'

/** The database's clock, which is the only one that counts. An answer also proves that the store is reachable. */
export async function clockMs(sql: Sql): Promise<number> {
  const [row] = await sql<{ ms: number }>`select extract(epoch from pawl.clock())::float8 * 1000 as ms`
  return row!.ms
}

/**
 * The timestamp for the next history step of `row`, an alias in the statement: now, or `at` if given, but never before
 * the last step. A transaction that began early may write late, and clocks can be set back, but timestamps within a
 * history never decrease.
 */
export function nextTime(row: string, at = 'pawl.clock()'): Literal {
  return literal(`greatest(${at}, (${row}.history[${row}.seq]).ts)`)
}

/**
 * Replaces the clock by one that tests can move while statements run. The offset is in a row, so each statement sees
 * one time. If the function itself were replaced, a statement that is just being planned could see two.
 */
export async function movableClock(sql: Sql): Promise<(seconds: number) => Promise<void>> {
  await sql.script(`
    create table pawl.moved (seconds float8 not null);
    insert into pawl.moved values (0);
    create or replace function pawl.clock() returns timestamptz language sql stable parallel safe as
      $$ select now() + make_interval(secs => (select seconds from pawl.moved)) $$`)
  return async seconds => void (await sql`update pawl.moved set seconds = seconds + ${seconds}::float8`)
}
