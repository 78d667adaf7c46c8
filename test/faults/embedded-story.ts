/** The embedded store lives in the application's process and dies with it, at any moment. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { startBabysitter } from '../../src/babysitter/babysitter.ts'
import { rescue } from '../../src/babysitter/rescue.ts'
import { type Engine, openEngine } from '../../src/engine/engine.ts'
import { defineTask, startWorker } from '../../src/worker/index.ts'
import { dice, seed } from '../harness/dice.ts'
import { eventually } from '../harness/eventually.ts'
import { startProgram } from '../harness/program.ts'
import type { EmbeddedProgram } from './programs/embedded.ts'

interface Line {
  readonly word: string
  readonly id: string
  readonly epoch: number
}

export function readLine(line: string): Line {
  const [word, id, epoch] = line.split(' ')
  return { word: word!, id: id ?? '', epoch: Number(epoch ?? 0) }
}

export async function freshFolder(t: TestContext): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'pawl-embedded-'))
  t.after(() => rm(root, { recursive: true, force: true }))
  return join(root, 'data')
}

/** One run of the application. It is killed at the moment it has printed enough. */
export async function liveAndDie(t: TestContext, folder: string, enough: number): Promise<readonly Line[]> {
  const ask: EmbeddedProgram = { folder }
  const program = startProgram(t, 'faults/programs/embedded.js', ask, readLine)
  const isProgress = ({ word }: Line) => word === 'queued' || word === 'settled'
  await program.printed(`${enough} lines of progress`, () => program.lines.filter(isProgress).length >= enough)
  program.signal('SIGKILL')
  await program.ended
  return program.lines
}

/** The application dies before it is open: during its first set-up, or while it recovers from an earlier death. */
async function dieOpening(t: TestContext, folder: string): Promise<void> {
  const program = startProgram(t, 'faults/programs/embedded.js', { folder } satisfies EmbeddedProgram, readLine)
  await eventually('it has begun to open the store', () => existsSync(join(folder, 'pawl.lock')))
  await eventually('it has touched its data', () => existsSync(join(folder, 'PG_VERSION')))
  program.signal('SIGKILL')
  await program.ended
}

/** Must hold over all runs: settled tasks stay settled, and one lease runs a task once, and alone. */
function checkLife(printedLines: readonly Line[], settled: Set<string>, leases: Set<string>): void {
  const running = new Set<string>()
  for (const { word, id, epoch } of printedLines) {
    if (word === 'settled') settled.add(id)
    if (word === 'ended') running.delete(id)
    if (word !== 'began') continue
    assert.ok(!settled.has(id), `task ${id} ran again after it was settled`)
    assert.ok(!leases.has(`${id} ${epoch}`), `task ${id} ran twice under epoch ${epoch}`)
    assert.ok(!running.has(id), `task ${id} ran under two leases at once`)
    leases.add(`${id} ${epoch}`)
    running.add(id)
  }
}

async function workOff(engine: Engine): Promise<void> {
  const work = defineTask({ type: 'work', leaseSeconds: 5, heartbeatSeconds: 1, handler: () => 'at last' })
  await using _babysitter = startBabysitter(engine, [rescue({ beginsBlind: false })])
  await using _worker = startWorker(engine, [work], { concurrency: 20, drainSeconds: 5, waitSeconds: 0.5 })
  const isDone = async () =>
    (await engine.queues()).items.every(({ due, scheduled, held }) => due + scheduled + held === 0)
  await eventually('all is worked off', isDone)
}

/** Kills the application again and again. Nothing acknowledged may be lost, and nothing may run under two leases. */
export async function killEmbedded(t: TestContext, lives: number): Promise<void> {
  const folder = await freshFolder(t)
  const queued = new Set<string>()
  const settled = new Set<string>()
  const leases = new Set<string>()
  const chance = dice(seed)
  for (let life = 1; life <= lives; life++) {
    if (life % 7 === 0) {
      await dieOpening(t, folder)
      continue
    }
    const printedLines = await liveAndDie(t, folder, 1 + chance.below(60))
    for (const { word, id } of printedLines) if (word === 'queued') queued.add(id)
    checkLife(printedLines, settled, leases)
  }
  assert.ok(queued.size > lives && settled.size > 0, `${queued.size} queued, ${settled.size} settled`)

  await using engine = await openEngine({ folder })
  assert.deepEqual(await engine.brokenRules(), [])
  for (const id of settled) assert.equal((await engine.task(id)).state, 'succeeded')
  await workOff(engine)
  for (const id of queued) assert.equal((await engine.task(id)).state, 'succeeded')
  assert.deepEqual(await engine.brokenRules(), [])
}
