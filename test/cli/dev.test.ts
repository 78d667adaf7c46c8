/** `pawl dev`: a server and a worker for the tasks in a folder. */
import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { connect } from '../../src/client/client.ts'
import type { TaskView } from '../../src/protocol/tasks/tasks.ts'
import { cli } from '../harness/cli.ts'
import { ended, eventually } from '../harness/eventually.ts'
import type { Program } from '../harness/program.ts'

/** The embedded store takes a second to open, and on a busy machine many. */
const bounded = { timeout: 590_000 }

/** A task whose handler waits until a file of its name exists, or returns at once. */
const handler = (version: number, type = 'work') => `
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineTask } from 'pawl'
import { version } from '../lib/version.ts'
export const ${type} = defineTask({
  type: '${type}',
  async handler(gate: string | null) {
    while (gate !== null && !existsSync(gate)) await sleep(20)
    return { file: ${version}, lib: version, pid: process.pid }
  },
})
`

async function startDev(t: TestContext, args: readonly string[] = []) {
  const pawl = await cli(t)
  const write = (file: string, content: string) => {
    mkdirSync(join(pawl.folder, file, '..'), { recursive: true })
    writeFileSync(join(pawl.folder, file), content)
  }
  write('tasks/work.ts', handler(1))
  write('tasks/work.test.ts', 'throw new Error("a test is not loaded")')
  write('lib/version.ts', 'export const version = 1')
  const program = pawl.start(['dev', '--port', '0', ...args])
  const line = await program.printed('the dashboard', printed => printed.startsWith('Dashboard: '))
  const url = /http:\/\/[\d.:]+\d/.exec(line)![0]
  await program.printed('its tasks', printed => printed === 'Worker: work')
  return { pawl, write, program, url, client: connect({ server: url }) }
}

test(
  'a changed file is used by the next task; the running one is finished, and no attempt is used',
  bounded,
  async t => {
    const { pawl, write, program, url, client } = await startDev(t, ['--concurrency', '1'])
    assert.match(await (await fetch(`${url}/`)).text(), /<title>Pawl<\/title>/)
    const reloads = () => program.lines.filter(line => line.startsWith('Reloaded: ')).length

    const running = await client.enqueue('work', join(pawl.folder, 'gate'))
    await eventually('it runs', async () => (await client.task(running.id)).state === 'running')
    const claimed = await client.enqueue('work', null)
    await eventually('it waits for its turn', async () => (await client.task(claimed.id)).state === 'assigned')
    write('tasks/work.ts', handler(2))
    const line = await program.printed('that it reloads', printed => printed.startsWith('Reloaded: '))
    assert.equal(line, 'Reloaded: work. The previous worker is finishing its tasks.')
    const moved = await ended(client, claimed.id)
    assert.deepEqual([(moved.output as { file: number }).file, moved.failures, moved.losses], [2, 0, 0])
    write('gate', '')
    const finished = await ended(client, running.id)
    assert.deepEqual([(finished.output as { file: number }).file, finished.failures, finished.losses], [1, 0, 0])

    write('lib/version.ts', 'export const version = 2')
    await eventually('a file that the tasks import is watched too', () => reloads() >= 2)
    write('tasks/more/other.ts', handler(1, 'other').replaceAll('../lib', '../../lib'))
    await eventually('so is a new folder', () => program.lines.some(line => line.startsWith('Reloaded: other, work')))
    const { id } = await client.enqueue('other', null)
    assert.equal(((await ended(client, id)).output as { lib: number }).lib, 2)
  },
)

test('files that cannot be loaded are reported, and the worker before them keeps running', bounded, async t => {
  const { write, program, client } = await startDev(t)
  const versionOf = async () => {
    const { id } = await client.enqueue('work', null)
    return ((await ended(client, id)).output as { lib: number }).lib
  }
  write('lib/version.ts', 'export const version = = 2')
  await eventually('what is wrong is printed', () => program.complaints().includes('keeps running'))
  assert.match(program.complaints(), /^Not loaded: tasks\/work\.ts: .*\n {2}lib\/version\.ts:1:23\n/)
  assert.doesNotMatch(program.complaints(), /^ +at /m)
  assert.equal(await versionOf(), 1)
  write('lib/version.ts', 'export const version = 3')
  await program.printed('that it reloads', line => line === 'Reloaded: work')
  assert.equal(await versionOf(), 3)
})

/** Loading it never ends. */
const endless = 'console.log("It loads."); await new Promise(() => {})'

test('a module that never finishes loading delays neither the next change nor an end', bounded, async t => {
  const { pawl, write, program } = await startDev(t)
  const loads = (of: Program<string>) => of.lines.filter(line => line === 'It loads.').length
  const endsAt = async (of: Program<string>) => {
    of.signal('SIGTERM')
    await eventually('it has ended', () => of.process.exitCode !== null || of.process.signalCode !== null)
    assert.equal(of.process.exitCode, 0)
  }
  write('tasks/work.ts', endless)
  await eventually('it loads', () => loads(program) === 1)
  write('tasks/work.ts', handler(2))
  await program.printed('that it reloads', line => line === 'Reloaded: work')
  write('tasks/work.ts', endless)
  await eventually('it loads', () => loads(program) === 2)
  await endsAt(program)

  const first = pawl.start(['dev', '--port', '0'])
  await eventually('it loads', () => loads(first) === 1)
  await endsAt(first)
})

test('a task that runs when the terminal is closed is finished', bounded, async t => {
  const { pawl, write, program, client } = await startDev(t)
  write('tasks/work.ts', handler(1).replace('return', 'console.log("Nobody reads this.")\n    return'))
  await program.printed('that it reloads', line => line === 'Reloaded: work')
  const { id } = await client.enqueue('work', join(pawl.folder, 'gate'))
  await eventually('it runs', async () => (await client.task(id)).state === 'running')
  const { stdout, stderr } = program.process
  stdout!.destroy()
  stderr!.destroy()
  // The system signals the end, and then the shell does.
  program.signal('SIGHUP')
  program.signal('SIGHUP')
  write('gate', '')
  await program.ended
  const { json } = await pawl.run(['task', 'describe', id, '--data', 'pawl-data', '--json'])
  const { state, failures, losses } = json() as TaskView
  assert.deepEqual([state, failures, losses], ['succeeded', 0, 0])
})

test('after an end of any kind no worker is left', bounded, async t => {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const { program, client } = await startDev(t)
    const { id } = await client.enqueue('work', null)
    const { pid } = (await ended(client, id)).output as { pid: number }
    assert.notEqual(pid, program.process.pid)
    program.signal(signal)
    await program.ended
    if (signal === 'SIGTERM') assert.equal(program.process.exitCode, 0)
    await eventually('the worker is gone', () => !isAlive(pid))
  }
})

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('a worker that ends by itself is reported, and starts again with the next change', bounded, async t => {
  const { write, program, client } = await startDev(t)
  const { id } = await client.enqueue('work', null)
  const { pid } = (await ended(client, id)).output as { pid: number }
  process.kill(pid, 'SIGKILL')
  await eventually('its end is printed', () => program.complaints().includes('The worker ended (SIGKILL)'))
  write('lib/version.ts', 'export const version = 2')
  await eventually('a new one starts', () => program.lines.filter(line => line === 'Worker: work').length === 2)
})

test('a folder without tasks is refused, with what creates one; a worker finds the same tasks', bounded, async t => {
  const pawl = await cli(t)
  const { code, err } = await pawl.run(['dev', '--port', '0'])
  assert.deepEqual([code, /no tasks in tasks\/, src\/tasks\/.*`pawl init` creates/.test(err)], [2, true], err)
  const { url, program, pawl: dev, client } = await startDev(t)
  const worker = dev.start(['worker', '--server', url])
  await worker.printed('the tasks that it found', line => / from work, through http/.test(line))
  rmSync(join(dev.folder, 'tasks'), { recursive: true })
  await eventually('their removal is reported', () => program.complaints().includes('keeps running'))
  const { id } = await client.enqueue('work', null)
  assert.equal((await ended(client, id)).state, 'succeeded')
})
