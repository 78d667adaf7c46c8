/** No command outlives its worker, whichever of the worker and its guards are killed, and at whatever moment. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { guardGroup, guardName } from '../../src/commands/guard.ts'
import type { CommandWorkerProgram } from '../commands/programs/worker.ts'
import { isAlive, ownFolder } from '../harness/command-rig.ts'
import { needsServer } from '../harness/databases.ts'
import { dice, seed } from '../harness/dice.ts'
import { eventually } from '../harness/eventually.ts'
import { fresh } from '../harness/fresh.ts'
import { type Program, startProgram } from '../harness/program.ts'
import type { CommandsProgram } from './programs/commands.ts'

const bounded = { timeout: 600_000 }
const count = 20

interface Row {
  readonly pid: number
  readonly parent: number
  readonly args: string
}

function processes(): Row[] {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid=,stat=,args='], { encoding: 'utf8' })
  const rows = [...stdout.matchAll(/^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/gm)]
  return rows
    .filter(([, , , state]) => !state!.startsWith('Z'))
    .map(([, pid, parent, , args]) => ({ pid: Number(pid), parent: Number(parent), args: args! }))
}

function guardsOf(parent: number): number[] {
  return processes()
    .filter(row => row.parent === parent && row.args.includes(guardName))
    .map(({ pid }) => pid)
}

/** A worker that runs many commands, each of two processes that ignore SIGTERM. */
async function busyWorker(t: TestContext): Promise<{ worker: Program<string>; pid: number; commands: number[] }> {
  const { engine, url, schema } = await fresh(t)
  const [folder, book] = [join(ownFolder(t), 'attempts'), join(ownFolder(t), 'book')]
  mkdirSync(book)
  const text = `trap "" TERM HUP; sh -c 'trap "" TERM HUP; echo > ${book}/$$; while :; do sleep 1; done' & echo > ${book}/$$; wait; wait`
  await engine.enqueueMany(Array.from({ length: count }, () => command(text)))
  const ask: CommandWorkerProgram = { database: url!, schema, folder, concurrency: count }
  const worker = startProgram(t, 'commands/programs/worker.js', ask, line => line)
  await eventually('all commands run', () => readdirSync(book).length === 2 * count)
  const commands = readdirSync(book).map(Number)
  t.after(() => {
    for (const pid of commands.filter(isAlive)) process.kill(pid, 'SIGKILL')
  })
  assert.deepEqual(commands.filter(isAlive), commands)
  return { worker, pid: worker.process.pid!, commands }
}

const command = (text: string) => ({ type: 'command', payload: { run: { command: ['sh', '-c', text] } } })

async function noneSurvives({ worker, commands }: { worker: Program<string>; commands: number[] }) {
  await worker.ended
  await eventually('no command is alive', () => !commands.some(isAlive))
}

const onServer = { ...bounded, ...needsServer() }

test('a worker that is killed takes all of its commands with it', onServer, async t => {
  const busy = await busyWorker(t)
  assert.equal(guardsOf(busy.pid).length, 2)
  busy.worker.signal('SIGKILL')
  await noneSurvives(busy)
})

for (const [which, take] of [
  ['one guard', 1],
  ['all guards', 2],
] as const) {
  test(`${which} killed: the commands go on, and still end with their worker`, onServer, async t => {
    const busy = await busyWorker(t)
    const before = guardsOf(busy.pid)
    for (const pid of before.slice(0, take)) process.kill(pid, 'SIGKILL')
    const after = await eventually('there are two guards again', () => {
      const guards = guardsOf(busy.pid)
      return guards.length === 2 && !before.slice(0, take).some(pid => guards.includes(pid)) && guards
    })
    assert.equal(after.filter(pid => !before.includes(pid)).length, take)
    assert.deepEqual(busy.commands.filter(isAlive), busy.commands)
    // The older guard may be the only one that has learned of a command from the start.
    for (const pid of after.filter(guard => before.includes(guard))) process.kill(pid, 'SIGKILL')
    busy.worker.signal('SIGKILL')
    await noneSurvives(busy)
  })
}

test('a guard and its worker killed at once: the other guard ends the commands', onServer, async t => {
  const busy = await busyWorker(t)
  process.kill(guardsOf(busy.pid)[0]!, 'SIGKILL')
  busy.worker.signal('SIGKILL')
  await noneSurvives(busy)
})

test('a guard knows all commands from its start, even if its worker dies before it writes to it', bounded, async t => {
  const program = startProgram(t, 'faults/programs/replaces-guard.js', {}, Number)
  const pid = await program.printed('a command runs', line => line > 0)
  t.after(() => {
    if (isAlive(pid)) process.kill(pid, 'SIGKILL')
  })
  await program.ended
  await eventually('the command is dead', () => !isAlive(pid))
})

test('whenever a worker is killed, or a guard shortly before it, no command stays behind', bounded, async t => {
  const chance = dice(seed)
  for (let round = 0; round < 12; round++) {
    const text = `echo running; exec sleep 1000.${process.pid}${round}`
    const mine = () => processes().filter(({ args }) => args.includes(`1000.${process.pid}${round}`))
    const ask: CommandsProgram = { command: ['sh', '-c', text] }
    const program = startProgram(t, 'faults/programs/commands.js', ask, line => line)
    await program.printed('a command runs', line => line === 'running')
    const guards = round % 2 === 0 ? [] : guardsOf(program.process.pid!)
    await sleep(chance.throw() * 100)
    for (const pid of guards.slice(0, 1)) process.kill(pid, 'SIGKILL')
    program.signal('SIGKILL')
    await program.ended
    await eventually('no command is alive', () => mine().every(({ pid }) => pid === program.process.pid))
  }
})

test('a guard that reads nothing is replaced before the next command starts', bounded, async t => {
  const child = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' })
  t.after(() => child.kill('SIGKILL'))
  await guardGroup(child.pid!).known
  const [stopped] = guardsOf(process.pid)
  process.kill(stopped!, 'SIGSTOP')
  const ended = once(child, 'exit')
  // Fills the pipe, however much the system lets it hold.
  for (let line = 0; isAlive(stopped!) && line < 100_000; line++) {
    const guarded = guardGroup(child.pid!)
    await guarded.known
    guarded.forget()
  }
  assert.equal(isAlive(stopped!), false)
  assert.equal(guardsOf(process.pid).length, 2)
  child.kill('SIGKILL')
  await ended
})
