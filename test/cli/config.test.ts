/** Settings: one table, four sources, and the source of each value is shown. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { dialectsOf, resolveSettings, storeOf } from '../../src/config/resolve-settings.ts'
import { dialectNames } from '../../src/protocol/dialects.ts'
import { type Cli, cli } from '../harness/cli.ts'

const bounded = { timeout: 600_000 }

type Printed = Record<string, { value: unknown; from: string; by: string }>

async function place(t: TestContext, name: string, text: string): Promise<Cli> {
  const pawl = await cli(t)
  await writeFile(join(pawl.folder, name), text)
  return pawl
}

test(
  'a flag goes before the environment, that before the file, that before the default; each is named',
  bounded,
  async t => {
    const pawl = await place(
      t,
      'pawl.config.ts',
      `import { defineConfig } from 'pawl'
     const port: number = 1000 + 1
     export default defineConfig({ port, host: 'localhost', schema: 'filed', concurrency: 3, data: './here',
       taskTypes: { mail: { retry: { attempts: 5 } } } })`,
    )
    const env = {
      HOST: '127.0.0.2',
      PORT: '2002',
      PAWL_QUEUES: 'a, b',
      PAWL_JOBNIK_LEASE_SECONDS: '3600',
      PAWL_MAX_STREAMS: '7',
    }
    const { code, err, json } = await pawl.run(['config', '--json', '--port', '3003'], { env })
    assert.equal(code, 0, err)
    const printed = json() as Printed
    const { host, port, schema, concurrency, connections, data, queues, server, taskTypes, jobnikLeaseSeconds } =
      printed
    assert.deepEqual(printed.maxStreams, { value: 7, from: 'env', by: 'PAWL_MAX_STREAMS' })
    assert.deepEqual(printed.maxStreamsPerKey, { value: 100, from: 'default', by: '' })
    assert.deepEqual(jobnikLeaseSeconds, { value: 3600, from: 'env', by: 'PAWL_JOBNIK_LEASE_SECONDS' })
    assert.deepEqual(port, { value: 3003, from: 'flag', by: '--port' })
    assert.deepEqual(host, { value: '127.0.0.2', from: 'env', by: 'HOST' })
    assert.deepEqual(queues, { value: ['a', 'b'], from: 'env', by: 'PAWL_QUEUES' })
    assert.deepEqual(schema, { value: 'filed', from: 'file', by: 'pawl.config.ts' })
    assert.deepEqual(concurrency, { value: 3, from: 'file', by: 'pawl.config.ts' })
    assert.deepEqual(data?.value, join(pawl.folder, 'here'))
    assert.deepEqual(taskTypes?.value, { mail: { retry: { attempts: 5 } } })
    assert.deepEqual(connections, { value: 4, from: 'default', by: '' })
    assert.equal(server?.value, 'http://127.0.0.2:3003')
    const table = await pawl.run(['config'], { env: { ...env, COLUMNS: '80' } })
    assert.match(table.out, /^host +127\.0\.0\.2 +env HOST$/m)
  },
)

test('how long the store may take can be set by flag, environment and file, for both kinds of store', () => {
  const flags = { statementSeconds: 5 }
  const env = { PAWL_LOCK_SECONDS: '0.5', PAWL_CONNECTION_SECONDS: '20' }
  const file = { name: 'pawl.config.json', values: { idleSeconds: 30 } }
  const bounds = { statementSeconds: 5, lockSeconds: 0.5, idleSeconds: 30, connectionSeconds: 20 }
  assert.deepEqual(storeOf(resolveSettings({ flags, env, file })).bounds, bounds)
  const onServer = { ...env, DATABASE_URL: 'postgres://localhost/a' }
  assert.deepEqual(storeOf(resolveSettings({ flags, env: onServer, file })).bounds, bounds)
})

test('a misspelt setting is refused with what may have been meant, a bad value with who said it', bounded, async t => {
  const misspelt = await place(t, 'pawl.config.json', '{ "prot": 1 }')
  const unknown = await misspelt.run(['config'])
  assert.deepEqual(
    [unknown.code, unknown.err],
    [2, 'pawl: pawl.config.json: unknown option "prot". Did you mean "port"?\n'],
  )
  const bad = await place(t, 'pawl.config.mjs', "export default { port: 'high' }")
  assert.deepEqual((await bad.run(['config'])).err, 'pawl: pawl.config.mjs: port must be a number.\n')
  const env = await bad.run(['config', '--config', 'none.json'], { env: { PORT: '70000' } })
  assert.match(env.err, /none\.json: file not found/)
  const pawl = await cli(t)
  assert.equal((await pawl.run(['config'], { env: { PORT: '70000' } })).err, 'pawl: PORT must be from 0 to 65535.\n')
  assert.equal(
    (await pawl.run(['config', '--server', 'x'])).err,
    'pawl: --server must be a URL that begins with http:// or https://.\n',
  )
  const type = await place(t, 'pawl.config.json', '{ "taskTypes": { "mail": { "retry": { "atempts": 2 } } } }')
  assert.match((await type.run(['config'])).err, /taskTypes must have a type "mail" .*did you mean "attempts"/)
})

test('secrets are not printed', bounded, async t => {
  const pawl = await cli(t, { PAWL_KEY: 'pawl_sesame', DATABASE_URL: 'postgres://me:sesame@db/x' })
  for (const args of [['config'], ['config', '--json']]) {
    const { code, out } = await pawl.run(args)
    assert.equal(code, 0)
    assert.doesNotMatch(out, /sesame/)
    assert.match(out, /postgres:\/\/me:\*\*\*@db\/x/)
  }
})

test('two config files are one too many', bounded, async t => {
  const pawl = await place(t, 'pawl.config.json', '{}')
  await writeFile(join(pawl.folder, 'pawl.config.js'), 'export default {}')
  const { code, err } = await pawl.run(['config'])
  assert.deepEqual([code, /pawl\.config\.js: pawl\.config\.json exists too; keep only one/.test(err)], [2, true])
})

test('what the config file says of task types is in the store when the server is up', bounded, async t => {
  const pawl = await place(
    t,
    'pawl.config.json',
    '{ "port": 0, "taskTypes": { "mail": { "retry": { "attempts": 5 } } } }',
  )
  const program = pawl.start(['up', '--json'])
  const { url } = JSON.parse(await program.printed('where it serves', line => line.startsWith('{')))
  const { out, err } = await pawl.run(['type', 'show', 'mail', '--json', '--server', url])
  assert.equal(err, '')
  assert.deepEqual(JSON.parse(out), { retry: { attempts: 5 } })
})

test('a server serves the dialects that it is told to, all if it is told so, and else none', () => {
  const served = (flags: Record<string, unknown>, env: NodeJS.ProcessEnv = {}) =>
    dialectsOf(resolveSettings({ flags, env, file: undefined })).dialects
  assert.deepEqual(served({}), [])
  assert.deepEqual(served({ dialects: ['jsm', 'marie'] }), ['jsm', 'marie'])
  assert.deepEqual(served({}, { PAWL_DIALECTS: 'jsm,marie' }), ['jsm', 'marie'])
  assert.deepEqual(served({ dialects: ['all'] }), dialectNames)
  assert.deepEqual(served({ dialects: ['none'] }, { PAWL_DIALECTS: 'all' }), [])
  assert.throws(() => served({ dialects: ['all', 'jsm'] }), { code: 'OPTION_INVALID' })
})

test('how long a silent worker keeps its datum can be set, and a value that no lease may have is refused', () => {
  const leaseSecondsFrom = (seconds: string) =>
    dialectsOf(resolveSettings({ flags: {}, env: { PAWL_FALCONERI_LEASE_SECONDS: seconds }, file: undefined }))
      .falconeriLeaseSeconds
  assert.deepEqual([leaseSecondsFrom(''), leaseSecondsFrom('600')], [86_400, 600])
  assert.throws(() => leaseSecondsFrom('1'), { code: 'OPTION_INVALID', message: /PAWL_FALCONERI_LEASE_SECONDS/ })
})

test('the largest bodies can be set, and more than a text can hold is refused', () => {
  const given = (env: Record<string, string>) => {
    const { maxBodyBytes, maxYamlBytes } = resolveSettings({ flags: {}, env, file: undefined }).values
    return [maxBodyBytes, maxYamlBytes]
  }
  assert.deepEqual(given({}), [33_554_432, 2_097_152])
  assert.deepEqual(given({ PAWL_MAX_BODY_BYTES: '5000', PAWL_MAX_YAML_BYTES: '4000' }), [5000, 4000])
  for (const name of ['PAWL_MAX_BODY_BYTES', 'PAWL_MAX_YAML_BYTES']) {
    assert.throws(() => given({ [name]: '1000000000' }), { code: 'OPTION_INVALID', message: new RegExp(name) })
  }
})
