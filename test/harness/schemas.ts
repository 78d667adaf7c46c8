/**
 * Schemas that earlier tests of this process have left: they are emptied and used again, for to make one takes ten times as
 * long. One whose tables, functions or triggers a test has changed is not, nor is one that has grown.
 */
import pg from 'pg'

export interface Schema {
  readonly name: string
  /** What it is made of. */
  readonly print: string
  /** What is in its tables from the beginning, as SQL that puts it there. */
  readonly refill: string
}

const left = new Map<string, Schema[]>()
const pools = new Map<string, pg.Pool>()
let isOff = !/[/](src|test[/](dialects|http|seeds|stories))[/]/.test(process.argv[1] ?? '')

/** For harnesses that start processes: what these still write when they are killed must not be the next test's. */
export function neverReuse(): void {
  isOff = true
}

/** One to be used again, empty as at first; undefined: none is left. */
export async function takeSchema(url: string): Promise<Schema | undefined> {
  const schema = isOff ? undefined : left.get(url)?.pop()
  if (schema === undefined) return undefined
  const pool = poolOf(url)
  if ((await printOf(pool, schema.name)) === schema.print) {
    await pool.query(schema.refill)
    return schema
  }
  await pool.query(`drop schema if exists "${schema.name}" cascade`)
  return takeSchema(url)
}

/** What a schema is that was just made; undefined: it is not to be used again. */
export async function portrayed(url: string, name: string): Promise<Schema | undefined> {
  if (isOff) return undefined
  const pool = poolOf(url)
  return { name, print: await printOf(pool, name), refill: await refillOf(pool, name) }
}

/** When the test's hooks have run, the next one may have it. */
export function leaveSchema(url: string, schema: Schema): void {
  left.set(url, [...(left.get(url) ?? []), schema])
}

function poolOf(url: string): pg.Pool {
  const pool = pools.get(url) ?? new pg.Pool({ connectionString: url, max: 1, allowExitOnIdle: true })
  pools.set(url, pool)
  return pool
}

async function printOf(pool: pg.Pool, name: string): Promise<string> {
  const { rows } = await pool.query(
    `with ours as (select oid, relname, relkind, reltype from pg_class where relnamespace = $1::regnamespace)
     select md5(string_agg(part, ',' order by part)) || (select sum(pg_relation_size(oid)) > 4000000 from ours) as print
       from (select concat('c', oid, relname, relkind) as part from ours
              union all
             select concat('a', attrelid, attname, attnotnull, atthasdef, attisdropped, atttypid, attcollation)
               from pg_attribute where attrelid in (select oid from ours)
              union all
             select concat('p', oid, md5(prosrc)) from pg_proc where pronamespace = $1::regnamespace and proname <> 'clock'
              union all
             select concat('t', oid, tgname, tgenabled) from pg_trigger where tgrelid in (select oid from ours)
              union all
             select concat('k', oid, conname, convalidated) from pg_constraint where connamespace = $1::regnamespace) as parts`,
    [`"${name}"`],
  )
  return rows[0].print
}

/** Guards against backward moves and early ends do not look on. */
async function refillOf(pool: pg.Pool, name: string): Promise<string> {
  const { rows } = await pool.query(
    `select relname, relkind from pg_class where relnamespace = $1::regnamespace and relkind in ('r', 'S') order by relname`,
    [`"${name}"`],
  )
  const place = (row: { relname: string }) => `"${name}"."${row.relname}"`
  const statements = ['begin', 'set local session_replication_role = replica']
  for (const row of rows) {
    if (row.relkind === 'S') statements.push(`alter sequence ${place(row)} restart`)
    else {
      const { rows: kept } = await pool.query(`select coalesce(jsonb_agg(t), '[]')::text as all from ${place(row)} t`)
      statements.push(`delete from ${place(row)}`)
      if (kept[0].all !== '[]') {
        const from = `jsonb_populate_recordset(null::${place(row)}, ${pg.escapeLiteral(kept[0].all)})`
        statements.push(`insert into ${place(row)} overriding system value select * from ${from}`)
      }
    }
  }
  const { rows: clock } = await pool.query('select pg_get_functiondef($1::regproc) as text', [`"${name}".clock`])
  return [...statements, clock[0].text, 'commit'].join(';\n')
}
