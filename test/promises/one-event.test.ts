import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endGraces, expireTasks } from '../../src/babysitter/chores.ts'
import { rescue } from '../../src/babysitter/rescue.ts'
import { type Engine, openEngine } from '../../src/engine/engine.ts'
import { Problem } from '../../src/kernel/problem.ts'
import type { ClaimedTask, Refusal, SettledTask } from '../../src/protocol/tasks/sync.ts'
import type { EventView, NewTaskItem } from '../../src/protocol/tasks/tasks.ts'
import { movableClock } from '../../src/store/driver/clock.ts'
import { needsServer } from '../harness/databases.ts'
import { type Dice, dice, seed } from '../harness/dice.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { retryingWhenBusy } from '../harness/retrying.ts'
import { allTasks, checkReplay } from '../model/replay.ts'

const workers = ['ada', 'bob', 'cy', 'dot', 'eve']
const operators = 2
const requestsEach = 250

test(
  'a thousand tasks with failures, cancels and lost leases: all end, and events tell all of it',
  needsServer(),
  async t => {
    const { engine, sql, url, schema } = await fresh(t)
    const advance = await movableClock(sql)
    const open = async () => {
      const made = await openEngine({ database: url!, schema, connections: 2, migrate: false })
      t.after(() => made.close())
      return retryingWhenBusy(made)
    }
    const chance = dice(seed)
    const queued = await engine.enqueueMany(Array.from({ length: 1000 }, (_, n) => newTask(chance, n)))
    const ids = queued.map(({ id }) => id)
    const story: Story = { won: new Set(), settled: new Map(), refused: 0, isOver: false }

    const working = Promise.all(workers.map(async (name, n) => work(await open(), name, dice(seed + n), story)))
    const asking = Promise.all(
      Array.from({ length: operators }, async (_, n) => operate(await open(), ids, dice(seed + 100 + n))),
    )
    const sitting = babysit({ sql, advance }, [await open(), await open()], dice(seed + 200), asking).finally(() => {
      story.isOver = true
    })
    await Promise.all([working, asking, sitting])

    const tasks = await allTasks(engine)
    assert.equal(tasks.filter(({ endedAt }) => endedAt !== null).length, 1000, 'all have ended')
    const events = await checkReplay(engine)
    checkAnswers(events, story)
    checkVariety(events, story)
  },
)

interface Story {
  /** Leases, as `id epoch`. */
  readonly won: Set<string>
  /** The acknowledged outcome of a lease. */
  readonly settled: Map<string, string>
  refused: number
  isOver: boolean
}

const leaseOf = ({ id, epoch }: { id: string; epoch: number }) => `${id} ${epoch}`

function newTask(chance: Dice, payload: number): NewTaskItem {
  const throws = chance.throw()
  return {
    type: 'one',
    payload,
    retry: { attempts: 1 + Math.floor(throws * 3), losses: 1 + Math.floor(chance.throw() * 2), delaySeconds: 2 },
    ...(chance.throw() < 0.3 && { graceSeconds: 2 }),
    ...(chance.throw() < 0.1 && { expireInSeconds: 60 }),
    ...(chance.throw() < 0.1 && { timeoutSeconds: 5, heartbeatSeconds: 60 }),
    ...(chance.throw() < 0.1 && { deadLetter: 'never' as const }),
  }
}

/** A worker that fails, releases tasks, forgets what it holds, and sometimes repeats an old report. */
async function work(engine: Engine, worker: string, chance: Dice, story: Story): Promise<void> {
  const forgotten: SettledTask[] = []
  let settled: SettledTask[] = []
  let running: ClaimedTask[] = []
  while (!story.isOver || settled.length > 0) {
    const started = running.map(({ id, epoch }) => ({ id, epoch }))
    const beats = running.filter(() => chance.throw() < 0.5).map(({ id, epoch }) => ({ id, epoch, progress: worker }))
    const claim = story.isOver ? 0 : 1 + Math.floor(chance.throw() * 8)
    const answer = await engine.sync({ worker, queues: ['one'], claim, waitSeconds: 0.05, started, beats, settled })
    hear(story, settled, answer.refused)
    for (const task of answer.claimed) {
      assert.ok(!story.won.has(leaseOf(task)), `${leaseOf(task)} was won twice`)
      story.won.add(leaseOf(task))
    }
    const reports = running.map(task => reportOn(task, chance))
    settled = reports.filter(() => chance.throw() < 0.7)
    forgotten.push(...reports.filter(report => !settled.includes(report)))
    running = []
    for (const task of answer.claimed) {
      const fate = chance.throw()
      if (fate < 0.12) forgotten.push(reportOn(task, chance))
      else if (fate < 0.4) running.push(task)
      else settled.push(reportOn(task, chance))
    }
    if (chance.throw() < 0.03) settled.push(...forgotten.splice(0, 2))
    const again = chance.throw() < 0.1 ? chance.among(settled) : undefined
    if (again !== undefined) forgotten.push(again)
  }
}

function hear(story: Story, settled: readonly SettledTask[], refused: readonly Refusal[]): void {
  for (const { code, message } of refused) assert.equal(code, 'LEASE_LOST', message)
  story.refused += refused.length
  const lost = new Set(refused.map(leaseOf))
  for (const item of settled.filter(item => !lost.has(leaseOf(item)))) {
    const before = story.settled.get(leaseOf(item)) ?? item.outcome
    assert.equal(item.outcome, before, `${leaseOf(item)} was acknowledged with two outcomes`)
    story.settled.set(leaseOf(item), item.outcome)
  }
}

function reportOn({ id, epoch }: ClaimedTask, chance: Dice): SettledTask {
  const fate = chance.throw()
  if (fate < 0.5) return { id, epoch, outcome: 'succeeded', output: { fate } }
  if (fate < 0.7) return { id, epoch, outcome: 'failed', error: { message: 'oh' } }
  if (fate < 0.75) return { id, epoch, outcome: 'failed', error: { message: 'never', permanent: true } }
  if (fate < 0.87) return { id, epoch, outcome: 'released' }
  if (fate < 0.91) return { id, epoch, outcome: 'skipped', reason: 'nothing to do' }
  if (fate < 0.95) return { id, epoch, outcome: 'cancelled' }
  return { id, epoch, outcome: 'dead_lettered', error: { message: 'odd', reasonCode: 'parse_error' } }
}

/** An operator who makes any request about any task. Refusals may only be due to the state. */
async function operate(engine: Engine, ids: readonly string[], chance: Dice): Promise<void> {
  const requests: ((id: string) => Promise<unknown>)[] = [
    id => engine.cancel(id, { mode: 'soft' }),
    id => engine.cancel(id, { mode: 'soft' }),
    id => engine.cancel(id, { mode: 'hard' }),
    id => engine.resume(id),
    id => engine.retry(id),
    id => engine.redrive({ ids: [id] }),
    () => engine.redrive({ limit: 3, ratePerSecond: 1, payload: 'again' }),
    id => engine.deadLetter(id, { reasonCode: 'policy_violation' }),
  ]
  for (let n = 0; n < requestsEach; n++) {
    // Picks held tasks, tasks that ended badly, or any task, so that each request is often allowed.
    const state = ([['assigned', 'running'], ['cancelled', 'failed', 'dead_lettered'], undefined] as const)[n % 3]
    const found = state === undefined ? [] : (await engine.tasks({ state, limit: 20 })).items
    const id = chance.among(found)?.id ?? chance.among(ids)!
    await chance.among(requests)!(id).catch(error => {
      if (!(error instanceof Problem) || error.code !== 'MOVE_REFUSED') throw error
    })
  }
}

type Movable = Pick<Fresh, 'sql' | 'advance'>

/** Moves the clock and runs two babysitters at once, until the operators are done and all tasks have ended. */
async function babysit({ sql, advance }: Movable, sitters: readonly Engine[], chance: Dice, asking: Promise<unknown>) {
  let isAsking = true
  const asked = () => {
    isAsking = false
  }
  void asking.then(asked, asked)
  const chores = sitters.map(({ context }) => {
    const rescueChore = rescue({ now: () => 0, beginsBlind: false })
    return async () => {
      for (const chore of [rescueChore, expireTasks, endGraces]) assert.equal((await chore.run(context)).failed, 0)
    }
  })
  for (let turns = 0; turns < 1000; turns++) {
    const [open] = await sql<{ n: number }>`select count(*) as n from pawl.task where ended_at is null`
    if (open!.n === 0 && !isAsking) return
    await advance(1 + Math.floor(chance.throw() * 6))
    await Promise.all(chores.map(look => look()))
  }
}

/** The answers to workers match the tables: every claim, and every acknowledged settle. */
function checkAnswers(events: readonly EventView[], { won, settled }: Story): void {
  const claimed = events.filter(({ type }) => type === 'task.claimed')
  const nameOf = ({ entityId, epoch }: EventView) => `${entityId} ${epoch}`
  assert.deepEqual(claimed.map(nameOf).sort(), [...won].sort())
  const ends = events.filter(({ cause, actor }) => actor.startsWith('worker:') && /^reported_(?!start)/.test(cause!))
  const written = ends.map(event => `${nameOf(event)} ${event.cause!.replace('reported_', '')}`)
  assert.deepEqual(written.sort(), [...settled].map(([lease, outcome]) => `${lease} ${outcome}`).sort())
}

/** The checks are only meaningful if all of this happened. */
function checkVariety(events: readonly EventView[], { refused }: Story): void {
  const causes = new Set(events.map(({ cause }) => cause))
  const reports = ['succeeded', 'failed', 'released', 'skipped', 'cancelled', 'dead_lettered'].map(
    end => `reported_${end}`,
  )
  const others = ['lease_lost', 'timeout', 'cancel', 'cancel_grace_passed', 'time_to_live', 'operator']
  const missing = [...reports, ...others, 'resume', 'retry', 'redrive'].filter(cause => !causes.has(cause))
  assert.deepEqual(missing, [])
  assert.ok(refused > 0, 'some settles came too late')
}
