/** docs/schema.sql: the schema that the migrations create, with the comments that the migrations have. */
import { openEmbedded } from '../src/store/driver/embedded.ts'
import { makeSql, type Sql } from '../src/store/driver/sql.ts'
import { migrate, schemaSql } from '../src/store/schema/migrate.ts'
import { dumpSchema } from './dump-schema.ts'

const note =
  '-- Dumped from a database by `npm run docs`; do not edit. src/store/schema/migrations creates this schema.'

/** The page, from a store in memory that was just created. */
export async function embeddedSchemaPage(): Promise<string> {
  const { driver, close } = await openEmbedded(undefined)
  try {
    const sql = makeSql(driver, 'pawl')
    await migrate(sql)
    return await schemaPage(sql)
  } finally {
    await close()
  }
}

/** The page, from any store that is up to date. */
export async function schemaPage(sql: Sql): Promise<string> {
  const dump = await dumpSchema(sql)
  const comments = commentsIn(schemaSql())
  const commented = dump.replace(/^create (?:type|function|table|view) pawl\.(\w+)/gim, (statement, name) => {
    return (comments.get(name) ?? '') + statement
  })
  return `${note}\n\n${commented}`
}

/** The comment above each statement that creates something, by the name of what it creates. */
function commentsIn(text: string): Map<string, string> {
  const created = /((?:^-- .*\n)+)create (?:or replace )?(?:type|function|table|view) (?:if not exists )?pawl\.(\w+)/gm
  return new Map([...text.matchAll(created)].map(([, comment, name]) => [name!, comment!]))
}
