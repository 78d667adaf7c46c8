/** Checks deploy/Dockerfile and deploy/docker-compose.yaml without Docker: by reading them, and by running what they run. */
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { parse } from 'yaml'
import { findRoot } from '../../scripts/job-schema-page.ts'
import { serverDefaults } from '../../src/server/options.ts'
import { eventually } from '../harness/eventually.ts'
import { freePort } from '../harness/free-port.ts'
import { ownDatabase } from '../harness/own-database.ts'
import { served } from '../harness/served.ts'

const root = findRoot(import.meta.dirname)
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }

interface Instruction {
  readonly name: string
  readonly value: string
}

/** The instructions of each stage. A comment inside an instruction is not part of it. */
function stagesOf(dockerfile: string): Instruction[][] {
  const lines = dockerfile.split('\n').filter(line => line.trim() !== '' && !line.trimStart().startsWith('#'))
  const stages: Instruction[][] = []
  for (const line of lines
    .join('\n')
    .replaceAll(/\s*\\\n\s*/g, ' ')
    .split('\n')) {
    const [, name, value] = /^([A-Z]+) (.+)$/.exec(line) ?? assert.fail(`not an instruction: ${line}`)
    if (name === 'FROM') stages.push([])
    stages.at(-1)!.push({ name: name!, value: value! })
  }
  return stages
}

const dockerfile = readFileSync(join(root, 'deploy/Dockerfile'), 'utf8')
const stages = stagesOf(dockerfile)
const last = stages.at(-1)!
const instruction = (name: string) => last.find(each => each.name === name)?.value ?? assert.fail(`no ${name}`)
const healthcheck = JSON.parse(/CMD (\[.+\])$/.exec(instruction('HEALTHCHECK'))![1]!) as string[]

test('the image has a fixed base, copies only the installed package, and runs as a user who is not root', () => {
  for (const [from] of stages) assert.match(from!.value, /^[\w-]+:[\w.-]+( AS \w+)?$/, 'a tag, which is not "latest"')
  assert.deepEqual(
    last.filter(({ name }) => ['ADD', 'COPY', 'RUN'].includes(name)).map(({ value }) => value),
    ['--from=build /opt/pawl /opt/pawl'],
  )
  assert.match(instruction('USER'), /^[1-9]\d*:[1-9]\d*$/)
  assert.ok(last.findIndex(({ name }) => name === 'USER') > last.findIndex(({ name }) => name === 'COPY'))
  assert.equal(instruction('EXPOSE'), String(serverDefaults.port))
})

test('the image starts a program that the package has, without a shell', () => {
  const [node, main] = JSON.parse(instruction('ENTRYPOINT')) as string[]
  assert.equal(node, '/opt/pawl/bin/node')
  const path = main!.replace('/opt/pawl/lib/node_modules/pawl/', '')
  assert.ok(existsSync(join(root, path)), path)
  const words = JSON.parse(instruction('CMD')) as string[]
  const help = execFileSync(process.execPath, [join(root, path), ...words, '--help'], { encoding: 'utf8' })
  assert.match(help, /^pawl up/)
})

test('the healthcheck of the image succeeds while a server runs, and fails when it does not', async t => {
  const { server } = await served(t)
  const [, ...words] = healthcheck
  const check = async (port: string | number) => {
    const child = spawn(process.execPath, words, { env: { PORT: String(port) }, stdio: 'ignore' })
    return (await once(child, 'exit'))[0] as number
  }
  assert.equal(await check(new URL(server.url).port), 0)
  assert.equal(await check(await freePort()), 1)
})

interface Service {
  readonly image: string
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly ports?: readonly string[]
  readonly volumes?: readonly string[]
  readonly secrets?: readonly string[]
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
  readonly healthcheck?: object
  readonly [other: string]: unknown
}
const compose = parse(readFileSync(join(root, 'deploy/docker-compose.yaml'), 'utf8')) as {
  readonly services: Readonly<Record<string, Service>>
  readonly volumes: object
  readonly secrets: object
}
const { database, server, worker } = compose.services as Record<'database' | 'server' | 'worker', Service>

test('docker-compose.yaml has only fields of the compose specification, and names only what it defines', () => {
  const known =
    'build cap_drop command depends_on environment healthcheck image init ports profiles read_only restart secrets security_opt stop_grace_period tmpfs volumes'
  assert.deepEqual(Object.keys(compose).sort(), ['name', 'secrets', 'services', 'volumes'])
  for (const [name, service] of Object.entries(compose.services)) {
    assert.deepEqual(
      Object.keys(service).filter(key => !known.split(' ').includes(key)),
      [],
      name,
    )
    for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
      assert.equal(condition, 'service_healthy')
      assert.ok('healthcheck' in compose.services[other]! || compose.services[other]!.image.startsWith('pawl:'), other)
    }
    for (const secret of service.secrets ?? []) assert.ok(secret in compose.secrets, secret)
    for (const volume of service.volumes ?? []) {
      const [source] = volume.split(':')
      assert.ok(source!.startsWith('.') || source! in compose.volumes, volume)
    }
  }
  assert.deepEqual([server.image, worker.image], [`pawl:${version}`, `pawl:${version}`])
  const url = new URL(server.environment!.DATABASE_URL!.replace(/\$\{POSTGRES_PASSWORD\}/, 'secret'))
  const { POSTGRES_USER, POSTGRES_DB } = database.environment!
  assert.deepEqual([url.hostname, url.username, url.pathname], ['database', POSTGRES_USER, `/${POSTGRES_DB}`])
  assert.match(
    database.environment!.POSTGRES_PASSWORD!,
    /^\$\{POSTGRES_PASSWORD:\?/,
    'compose does not start without it',
  )
  assert.deepEqual(server.ports, [`127.0.0.1:${serverDefaults.port}:${serverDefaults.port}`])
})

test('containers of Pawl have a read-only root, no capabilities, and an init process', () => {
  for (const service of [server, worker]) {
    const { read_only, tmpfs, cap_drop, init } = service
    assert.deepEqual(
      { read_only, tmpfs, cap_drop, init },
      { read_only: true, tmpfs: ['/tmp'], cap_drop: ['ALL'], init: true },
    )
  }
})

test('the server of docker-compose.yaml waits for the first key, and starts when it is made as the page says', async t => {
  const env = {
    ...server.environment,
    PATH: process.env.PATH,
    DATABASE_URL: await ownDatabase(t),
    PORT: String(await freePort()),
  }
  const main = join(root, 'dist/cli/main.js')
  const early = spawnSync(process.execPath, [main, 'up'], { env, encoding: 'utf8', timeout: 60_000 })
  assert.notEqual(early.status, 0)
  assert.match(early.stderr + early.stdout, /KEYS_WANTED|key/i)
  const page = readFileSync(join(root, 'docs/deploy.md'), 'utf8')
  const [, words] = /run --rm server (key create .*--role admin --database) "\$url"/.exec(page)!
  const given = [main, ...words!.split(' '), env.DATABASE_URL]
  const secret = execFileSync(process.execPath, given, { env, encoding: 'utf8' })
  assert.match(secret, /^pawl_/)
  const child = start(t, [main, 'up'], env)
  await eventually('the server is healthy', () => isHealthy(env.PORT), 60)
  child.kill('SIGTERM')
})

function start(t: TestContext, words: readonly string[], env: NodeJS.ProcessEnv) {
  const child = spawn(process.execPath, words, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  void text(child.stdout)
  void text(child.stderr)
  t.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const over = once(child, 'exit')
    child.kill('SIGKILL')
    await over
  })
  return child
}

async function isHealthy(port: string): Promise<boolean> {
  const child = spawn(process.execPath, healthcheck.slice(1), { env: { PORT: port }, stdio: 'ignore' })
  return (await once(child, 'exit'))[0] === 0
}
