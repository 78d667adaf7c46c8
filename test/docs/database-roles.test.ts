/** The database roles of docs/operations.md, created by the statements of that page. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { findRoot } from '../../scripts/job-schema-page.ts'
import { allChores } from '../../src/babysitter/babysitter.ts'
import { connect } from '../../src/client/client.ts'
import { type Engine, openEngine, type PawlOptions } from '../../src/engine/engine.ts'
import { Problem } from '../../src/kernel/problem.ts'
import { startServer } from '../../src/server/server.ts'
import { defineTask } from '../../src/worker/define-task.ts'
import { startWorker } from '../../src/worker/worker.ts'
import { type Cluster, startCluster } from '../harness/cluster.ts'
import { eventually } from '../harness/eventually.ts'

const page = readFileSync(join(findRoot(import.meta.dirname), 'docs/operations.md'), 'utf8')
const bounded = { timeout: 600_000 }

function statementsIn(file: string): string {
  const block = new RegExp(`^\`\`\`sql ${file}\\n(.*?)^\`\`\`$`, 'ms').exec(page)
  assert.ok(block, `docs/operations.md has no block ${file}`)
  return block[1]!
}

interface Database {
  readonly cluster: Cluster
  urlAs(role: string): string
  administer(sql: string): Promise<unknown[]>
  /** Statements that the server has refused since it started. */
  refusals(): string[]
}

/** No role has rights other than those granted by the statements of the page. */
async function databaseFor(t: TestContext): Promise<Database> {
  const cluster = await startCluster({ version: 18, settings: { fsync: 'off' } })
  t.after(() => cluster.stop())
  const administer = async (sql: string) => {
    const client = new pg.Client(cluster.url)
    await client.connect()
    try {
      return (await client.query(sql)).rows as unknown[]
    } finally {
      await client.end()
    }
  }
  await administer('revoke all on database postgres from public; grant connect on database postgres to public')
  const readLog = () => readFileSync(join(cluster.folder, 'postgres.log'), 'utf8')
  // While it starts, the server refuses everybody, whatever their role.
  const startUpLength = readLog().length
  return {
    cluster,
    administer,
    urlAs: role => cluster.url.replace('postgres@', `${role}@`),
    refusals: () =>
      readLog()
        .slice(startUpLength)
        .split('\n')
        .filter(line => /(ERROR|FATAL|WARNING):/.test(line)),
  }
}

async function open(t: TestContext, options: PawlOptions): Promise<Engine> {
  const engine = await openEngine(options)
  t.after(() => engine.close())
  return engine
}

async function migrateAs(database: string): Promise<void> {
  await using _ = await openEngine({ database })
}

/** Runs what a server, its workers and its chores do, and expects that nothing fails. */
async function useStore(t: TestContext, database: Database): Promise<void> {
  const logged: string[] = []
  const log = (word: string, facts: Readonly<Record<string, unknown>> = {}) => {
    if (/fail|bug|error|lost/.test(word)) logged.push(`${word} ${JSON.stringify(facts)}`)
  }
  const engine = await open(t, { database: database.urlAs('pawl_app'), log })
  const server = await startServer(engine, { port: 0, log })
  t.after(() => server.close())
  const client = connect({ server: server.url })
  await client.createKey({ name: 'someone', role: 'viewer' })
  const greet = defineTask({
    type: 'greet',
    handler: async (_payload, task) => {
      task.log.info('hello')
      return 'Hello'
    },
  })
  const worker = startWorker(client, [greet], { log })
  t.after(() => worker.stop())
  const stages = [{ name: 'one', task: 'greet', payloads: [1, 2, 3] }]
  const { id } = await client.submit({ name: 'letters', stages }, { idempotencyKey: 'once' })
  const brief = await client.enqueue('greet', {}, { keepUntil: '2000-01-01T00:00:00Z' })
  await eventually('the job succeeds', async () => (await client.job(id)).state === 'succeeded')
  await eventually('the task succeeds', async () => (await client.task(brief.id)).state === 'succeeded')
  for (const chore of allChores(engine.context)) {
    const { failed = 0 } = await chore.run(engine.context)
    assert.equal(failed, 0, chore.name)
  }
  await assert.rejects(client.task(brief.id), { code: 'TASK_NOT_FOUND' })
  assert.equal((await fetch(`${server.url}/readyz`)).status, 200)
  assert.equal((await fetch(`${server.url}/metrics`)).status, 200)
  assert.deepEqual(
    (await client.doctor()).findings.filter(({ grade }) => grade === 'bad'),
    [],
  )
  assert.ok((await client.events({})).items.length > 0)
  await client.deleteJob(id)
  assert.deepEqual(logged, [])
}

test('a role that can only read and write rows runs a migrated store', bounded, async t => {
  const database = await databaseFor(t)
  await database.administer(statementsIn('roles.sql'))
  await migrateAs(database.urlAs('pawl_owner'))
  await useStore(t, database)
  assert.deepEqual(database.refusals(), [])
  const rights = await database.administer(`
    select has_schema_privilege('pawl_app', 'pawl', 'create') or has_database_privilege('pawl_app', 'postgres', 'create')
        or has_database_privilege('pawl_app', 'postgres', 'temporary') as more`)
  assert.deepEqual(rights, [{ more: false }])
})

test('a store that exists already can be handed to a role that can only read and write rows', bounded, async t => {
  const database = await databaseFor(t)
  await database.administer('create role pawl_owner login; grant create on database postgres to pawl_owner')
  await migrateAs(database.urlAs('pawl_owner'))
  const isForNew = (statement: string) => /create schema|create role pawl_owner/.test(statement)
  const roles = statementsIn('roles.sql')
    .split(/(?<=;)\n/)
    .filter(statement => !isForNew(statement))
  await database.administer(roles.join('\n') + statementsIn('grants.sql'))
  await useStore(t, database)
  assert.deepEqual(database.refusals(), [])
})

test('a role that may not migrate is told what it lacks', bounded, async t => {
  const database = await databaseFor(t)
  await database.administer('create role pawl_app login')
  const refusal = await openEngine({ database: database.urlAs('pawl_app') }).then(
    () => assert.fail('It was let in.'),
    (error: unknown) => error as Problem,
  )
  assert.ok(refusal instanceof Problem)
  assert.equal(refusal.code, 'MIGRATION_REFUSED')
  assert.deepEqual([refusal.details.role, refusal.details.schema, refusal.details.from], ['pawl_app', 'pawl', 0])
  assert.match(String(refusal.details.why), /permission denied for database postgres/)
  assert.match(refusal.message, /Run `pawl migrate` as the role that owns the schema/)
})
