/** An empty database on the shared PostgreSQL server, for programs that get a URL as users give it. */
import { randomBytes } from 'node:crypto'
import type { TestContext } from 'node:test'
import pg from 'pg'
import { serverUrl } from './databases.ts'

export async function ownDatabase(t: TestContext): Promise<string> {
  const server = await serverUrl(18)
  const name = `d_${randomBytes(6).toString('hex')}`
  await run(server, `create database ${name}`)
  t.after(() => run(server, `drop database ${name} with (force)`))
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}

async function run(server: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: server })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
