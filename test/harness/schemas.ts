/**
 * Schemas that earlier tests of this process left behind. They are emptied and used again, because creating one takes ten
 * times as long. A schema is dropped instead if a test changed its tables, functions or triggers, if it has grown, or if
 * another process wrote to it: late writes of a killed process must not reach the next test.
 */
import pg from 'pg'
import type { Driver } from '../../src/store/driver/sql.ts'

export interface Schema {
  readonly name: string
  /** A fingerprint of its tables, functions and triggers. */
  readonly print: string
  /** SQL that restores the rows that a new schema has. */
  readonly refill: string
}

const unused = new Map<Driver, Schema[]>()
const inUse = new Set<string>()
const shared = new Set<string>()
let processes = 0

/** Call when a test starts a process, and the returned function when the process has ended. */
export function shareSchemas(): () => void {
  processes += 1
  for (const name of inUse) shared.add(name)
  return () => {
    processes -= 1
  }
}

/** An empty schema from an earlier test, if there is one. */
export async function takeSchema(driver: Driver): Promise<Schema | undefined> {
  const schema = unused.get(driver)?.pop()
  if (schema === undefined) return undefined
  if ((await fingerprint(driver, schema.name)) !== schema.print) {
    await dropSchema(driver, schema.name)
    return takeSchema(driver)
  }
  await driver.script(schema.refill)
  markUsed(schema.name)
  return schema
}

/** Describes a schema that was just created, so that it can be used again. */
export async function describeSchema(driver: Driver, name: string): Promise<Schema> {
  markUsed(name)
  return { name, print: await fingerprint(driver, name), refill: await refillOf(driver, name) }
}

/** Call when everything that the test started has ended. */
export async function returnSchema(driver: Driver, schema: Schema): Promise<void> {
  inUse.delete(schema.name)
  if (shared.delete(schema.name)) return dropSchema(driver, schema.name)
  unused.set(driver, [...(unused.get(driver) ?? []), schema])
}

/** A statement of a process that was killed may still run, and deadlock with this one. */
export async function dropSchema(driver: Driver, name: string, triesLeft = 5): Promise<void> {
  try {
    await driver.script(`drop schema if exists "${name}" cascade`)
  } catch (error) {
    if (triesLeft === 1 || (error as { code?: string }).code !== '40P01') throw error
    await dropSchema(driver, name, triesLeft - 1)
  }
}

function markUsed(name: string): void {
  inUse.add(name)
  if (processes > 0) shared.add(name)
}

async function read(driver: Driver, text: string, name: string): Promise<string[][]> {
  const { rows } = await driver.query(text, [name])
  return rows as string[][]
}

async function fingerprint(driver: Driver, name: string): Promise<string> {
  const rows = await read(
    driver,
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
    `"${name}"`,
  )
  return rows[0]![0]!
}

/** Triggers are off meanwhile: they refuse to delete tasks that have not ended. */
async function refillOf(driver: Driver, name: string): Promise<string> {
  const relations = await read(
    driver,
    `select relname, relkind from pg_class where relnamespace = $1::regnamespace and relkind in ('r', 'S') order by relname`,
    `"${name}"`,
  )
  const statements = ['begin', 'set local session_replication_role = replica']
  for (const [relation, kind] of relations) {
    const place = `"${name}"."${relation}"`
    if (kind === 'S') {
      statements.push(`alter sequence ${place} restart`)
      continue
    }
    const { rows } = await driver.query(`select coalesce(jsonb_agg(t), '[]')::text from ${place} t`, [])
    const kept = (rows as string[][])[0]![0]!
    statements.push(`delete from ${place}`)
    if (kept === '[]') continue
    const from = `jsonb_populate_recordset(null::${place}, ${pg.escapeLiteral(kept)})`
    statements.push(`insert into ${place} overriding system value select * from ${from}`)
  }
  const clock = await read(driver, 'select pg_get_functiondef($1::regproc)', `"${name}".clock`)
  return [...statements, clock[0]![0]!, 'commit'].join(';\n')
}
