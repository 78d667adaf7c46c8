/** Others generate clients from the OpenAPI document. These tests do the same and use the clients on a real server. */
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { Validator } from '@seriousme/openapi-schema-validator'
import { findRoot } from '../../scripts/job-schema-page.ts'
import { dialectNames } from '../../src/protocol/dialects.ts'
import { openApi } from '../../src/server/open-api.ts'
import { served } from '../harness/served.ts'

const root = findRoot(import.meta.dirname)
const run = promisify(execFile)
const limits = { timeout: 120_000, maxBuffer: 10_000_000 }

/** Inside the project, because generated code imports installed packages. */
function folderFor(t: TestContext): string {
  const folder = mkdtempSync(join(root, 'build-client-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'openapi.json'), JSON.stringify(openApi()))
  return folder
}

function operationIds(): string[] {
  const paths = openApi().paths as Record<string, Record<string, { operationId: string }>>
  return Object.values(paths).flatMap(methods => Object.values(methods).map(({ operationId }) => operationId))
}

/** The steps and the output of both clients. */
const expected = {
  health: true,
  job: 'pending',
  claimed: 'greet',
  task: 'succeeded',
  found: 1,
  refused: [404, 'JOB_NOT_FOUND'],
  metrics: true,
}

const typeScriptProgram = `
import { ok, HttpError } from '@oazapfts/runtime'
import * as api from './api.js'

api.defaults.baseUrl = process.argv[2]!
const made = await ok(api.submit({ name: 'letters', stages: [{ name: 'one', task: 'greet', payload: { to: 'Ann' } }] }))
const [claimed] = await ok(api.claims({ worker: 'generated', queues: ['greet'], start: true }))
const done: api.Task = await ok(api.succeed(claimed!.id, { epoch: claimed!.epoch, output: 'Hello' }))
const found = await ok(api.jobs({ state: ['succeeded', 'running'], total: true }))
const refused = await ok(api.job('00000000-0000-4000-8000-000000000000')).catch((error: HttpError) => error)
if (!(refused instanceof HttpError)) throw new Error('An unknown job was found.')
// @ts-expect-error The states are typed.
const wrong: Parameters<typeof api.jobs>[0] = { state: 'nonsense' }
void wrong
// @ts-expect-error Booleans are booleans.
const notBoolean: Parameters<typeof api.jobs>[0] = { total: 'yes' }
void notBoolean
const answers = {
  health: (await ok(api.health())).ok,
  job: made.state,
  claimed: claimed!.type,
  task: done.state,
  found: found.items.length,
  refused: [refused.status, (refused.data as api.Problem).code],
  metrics: String(await ok(api.metrics())).includes('pawl_'),
}
console.log(JSON.stringify(answers))
`

test('a generated TypeScript client has every operation, is typed, and works', async t => {
  const folder = folderFor(t)
  const { server } = await served(t)
  const generator = join(root, 'node_modules/oazapfts/dist/cli.js')
  await run(process.execPath, [generator, join(folder, 'openapi.json'), join(folder, 'api.ts')], limits)
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'use.ts'), typeScriptProgram)
  const compilerOptions = { strict: true, noUncheckedIndexedAccess: true, module: 'nodenext', target: 'es2022' }
  const config = { compilerOptions: { ...compilerOptions, lib: ['es2023', 'dom'], types: ['node'] }, files: ['use.ts'] }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  const compiler = join(root, 'node_modules/typescript/bin/tsc')
  await run(process.execPath, [compiler, '-p', folder], limits).catch(({ stdout }) => assert.fail(stdout))
  const api = (await import(join(folder, 'api.js'))) as Record<string, unknown>
  const missing = operationIds().filter(name => typeof api[name] !== 'function')
  assert.deepEqual(missing, [])
  const { stdout } = await run(process.execPath, [join(folder, 'use.js'), server.url], limits)
  assert.deepEqual(JSON.parse(stdout), expected)
})

const pythonProgram = `
import json, sys
from pawl_client import Client
from pawl_client.api.claims import claims
from pawl_client.api.jobs import job, jobs, submit
from pawl_client.api.service import health, metrics
from pawl_client.api.tasks import succeed
from pawl_client.models import ClaimsBody, JobSpec, StageSpec, SucceedBody

with Client(base_url=sys.argv[1], raise_on_unexpected_status=True) as client:
    stage = StageSpec(name="one", task="greet", payload={"to": "Ann"})
    made = submit.sync(client=client, body=JobSpec(name="letters", stages=[stage]))
    [claimed] = claims.sync(client=client, body=ClaimsBody(worker="generated", queues=["greet"], start=True))
    done = succeed.sync(str(claimed.id), client=client, body=SucceedBody(epoch=claimed.epoch, output="Hello"))
    found = jobs.sync(client=client, total=True)
    refused = job.sync_detailed("00000000-0000-4000-8000-000000000000", client=client)
    print(json.dumps({
        "health": health.sync(client=client).ok,
        "job": made.state.value,
        "claimed": claimed.type_,
        "task": done.state.value,
        "found": len(found.items),
        "refused": [refused.status_code.value, refused.parsed.code.value],
        "metrics": b"pawl_" in metrics.sync_detailed(client=client).content,
    }))
`

const noPython = skipReason()

test('a generated Python client has every operation and works', { skip: noPython }, async t => {
  const folder = folderFor(t)
  const { server } = await served(t)
  const generator = ['-m', 'openapi_python_client', 'generate', '--path', join(folder, 'openapi.json')]
  const { stdout: notes } = await run('python3', [...generator, '--meta', 'none', '--output-path', 'pawl_client'], {
    ...limits,
    cwd: folder,
  })
  assert.doesNotMatch(notes, /will not be generated|Unable to p/)
  const files = readdirSync(join(folder, 'pawl_client', 'api'), { recursive: true }).map(String)
  const generated = files.filter(name => name.endsWith('.py') && !name.endsWith('__init__.py'))
  assert.equal(generated.length, operationIds().length)
  writeFileSync(join(folder, 'use.py'), pythonProgram)
  const { stdout } = await run('python3', [join(folder, 'use.py'), server.url], limits)
  assert.deepEqual(JSON.parse(stdout), expected)
})

function skipReason(): string | false {
  try {
    execFileSync('python3', ['-c', 'import httpx, openapi_python_client'], { stdio: 'ignore', timeout: 30_000 })
    return false
  } catch {
    return 'needs Python 3 with openapi-python-client (pip install openapi-python-client)'
  }
}

test('a TypeScript client can be generated from the document of each dialect, and works', async t => {
  const folder = folderFor(t)
  const { server } = await served(t, { server: { dialects: dialectNames } })
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  const generator = join(root, 'node_modules/oazapfts/dist/cli.js')
  for (const name of dialectNames) {
    const document = await (await fetch(`${server.url}/dialects/${name}/openapi.json`)).json()
    const { valid, errors } = await new Validator().validate(document as Record<string, unknown>)
    assert.ok(valid, `${name}: ${JSON.stringify(errors)}`)
    writeFileSync(join(folder, `${name}.json`), JSON.stringify(document))
    await run(process.execPath, [generator, join(folder, `${name}.json`), join(folder, `${name}.ts`)], limits)
  }
  const compilerOptions = {
    strict: true,
    module: 'nodenext',
    target: 'es2022',
    lib: ['es2023', 'dom'],
    types: ['node'],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
  const compiler = join(root, 'node_modules/typescript/bin/tsc')
  await run(process.execPath, [compiler, '-p', folder], limits).catch(({ stdout }) => assert.fail(stdout))
  const jobnik = await import(join(folder, 'jobnik.js'))
  jobnik.defaults.baseUrl = `${server.url}/dialects/jobnik`
  const made = await jobnik.postV1Jobs({ name: 'letters', data: {} })
  assert.deepEqual([made.status, made.data.status], [201, 'PENDING'])
  const found = await jobnik.getV1Jobs({ jobName: 'letters' })
  assert.equal(found.data.length, 1)
})

test('every schema has a type that client generators understand, so none of them drops an operation', () => {
  const faults: string[] = []
  const walk = (value: unknown, at: string): void => {
    if (typeof value !== 'object' || value === null) return
    const { enum: words, type, const: only } = value as Record<string, unknown>
    if (Array.isArray(words) && (type !== 'string' || words.some(word => typeof word !== 'string'))) {
      faults.push(`${at}: an enum of other values than texts, or without a type`)
    }
    if (only !== undefined && type === undefined && !/\/(if|then|else|not)(\/|$)/.test(at)) {
      faults.push(`${at}: a const without a type`)
    }
    for (const [name, inner] of Object.entries(value)) walk(inner, `${at}/${name}`)
  }
  walk(openApi(), '')
  assert.deepEqual(faults, [])
})
