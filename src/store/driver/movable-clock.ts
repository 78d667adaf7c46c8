import type { Sql } from './sql.ts'

/**
 * A clock that may be moved while statements run. It is kept in a row, so that each statement sees one time; a clock
 * that is moved by replacing its function can give a statement two, if it is being planned just then.
 */
export async function movableClock(sql: Sql): Promise<(seconds: number) => Promise<void>> {
  await sql.script(`
    create table pawl.moved (seconds float8 not null);
    insert into pawl.moved values (0);
    create or replace function pawl.clock() returns timestamptz language sql stable parallel safe as
      $$ select now() + make_interval(secs => (select seconds from pawl.moved)) $$`)
  return async seconds => void (await sql`update pawl.moved set seconds = seconds + ${seconds}::float8`)
}
