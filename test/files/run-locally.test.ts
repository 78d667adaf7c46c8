/** The number of local workers for the open stages with commands, and the fate of busy ones. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { findInputs } from '../../src/babysitter/chores.ts'
import { runLocally } from '../../src/babysitter/run-locally.ts'
import { localPool } from '../../src/runners/local.ts'
import { ended, eventually } from '../harness/eventually.ts'
import { fresh } from '../harness/fresh.ts'
import { served } from '../harness/served.ts'

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-local-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A stage of five datums, at most three at once, and the sizes requested from the pool. */
async function five(t: TestContext, idleSeconds: number) {
  const { engine } = await fresh(t)
  const folder = join(folderOf(t), 'in')
  mkdirSync(folder)
  for (let n = 0; n < 5; n++) writeFileSync(join(folder, `${n}`), '')
  const inputs = { in: { uri: String(pathToFileURL(folder)), glob: '/*' } }
  const { id } = await engine.submit({
    name: 'j',
    stages: [{ name: 's', run: { command: ['true'] }, inputs, parallelism: 3 }],
  })
  await findInputs.run(engine.context)
  const asked: Record<string, number>[] = []
  const resize = (wanted: ReadonlyMap<string, number>) => void asked.push(Object.fromEntries(wanted))
  const chore = runLocally({ resize, workers: () => [], close: async () => {} }, idleSeconds)
  const finish = async (count: number) => {
    const { claimed } = await engine.sync({ worker: 'w', queues: ['command'], claim: count })
    for (const { id, epoch } of claimed) await engine.succeed(id, epoch)
  }
  const runChore = async () => {
    await chore.run(engine.context)
    return asked.at(-1)
  }
  return { engine, id, finish, runChore }
}

test('a stage has as many workers as it may have at once, fewer when less is left, and none when it has ended', async t => {
  const { engine, id, finish, runChore } = await five(t, 0)
  assert.deepEqual(await runChore(), { command: 3 })
  await finish(3)
  assert.deepEqual(await runChore(), { command: 2 })
  await finish(1)
  assert.deepEqual(await runChore(), { command: 1 })
  await finish(1)
  assert.equal((await engine.job(id)).state, 'succeeded')
  assert.deepEqual(await runChore(), {})
})

test('workers without work stay for a moment, for the stage that may follow', async t => {
  const { finish, runChore } = await five(t, 3600)
  await runChore()
  await finish(3)
  assert.deepEqual(await runChore(), { command: 3 })
  await finish(2)
  assert.deepEqual(await runChore(), { command: 3 })
})

test('a worker that is let go while its command runs finishes it, and then ends', { timeout: 600_000 }, async t => {
  const { engine, server } = await served(t)
  const folder = folderOf(t)
  const outputFile = join(folder, 'said')
  const main = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url))
  const worker = [process.execPath, main, 'worker', '--commands', '--with-input', '--concurrency', '1']
  const pool = localPool({
    command: ['sh', '-c', 'exec "$@" > "$0"', outputFile, ...worker, '--server', server.url],
    env: { ...process.env, PAWL_DRAIN_SECONDS: '0', HOME: folder },
    most: 1,
    log: () => {},
  })
  t.after(() => pool.close())
  const script = 'touch "$0/busy"; while [ ! -e "$0/go" ]; do sleep 0.05; done'
  const { id } = await engine.enqueue('command', { run: { command: ['sh', '-c', script, folder] } })
  pool.resize(new Map([['command', 1]]))
  await eventually('it is busy', () => existsSync(join(folder, 'busy')))
  pool.resize(new Map())
  await eventually('it knows', () => readFileSync(outputFile, 'utf8').includes('Tasks still running: 1'))
  writeFileSync(join(folder, 'go'), '')
  // Only this worker can finish it: a released task would wait forever.
  assert.equal((await ended(engine, id)).state, 'succeeded')
  await eventually('it has ended', () => pool.workers().length === 0)
})
