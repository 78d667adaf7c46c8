/**
 * The same random commands, by several concurrent workers, each with an engine of its own. The outcome of a task cannot be
 * predicted, but it must be the result of legal moves, each recorded once.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { endGraces, expireTasks } from '../../src/babysitter/chores.ts'
import { rescue } from '../../src/babysitter/rescue.ts'
import { type Engine, openEngine } from '../../src/engine/engine.ts'
import { newId } from '../../src/kernel/id.ts'
import { Problem } from '../../src/kernel/problem.ts'
import { movableClock } from '../../src/store/driver/clock.ts'
import { seed } from '../harness/dice.ts'
import { fresh } from '../harness/fresh.ts'
import { type Command, command, kinds, typed } from './commands.ts'
import type { Lease } from './model.ts'
import { checkReplay } from './replay.ts'

const crowd = 6
const commandsEach = 150

test('whatever several do at once, histories are legal, the feed is whole and no rule is broken', async t => {
  const { engine, sql, url, schema } = await fresh(t)
  await engine.putTaskType('typed', typed)
  const shared: Shared = { ids: [], leases: [], advance: await movableClock(sql) }
  const crowding = Array.from({ length: crowd }, async (_, n) => {
    const own = await openEngine({ database: url!, schema, connections: 3, migrate: false })
    t.after(() => own.close())
    const rescueChore = rescue({ now: () => 0, beginsBlind: false })
    for (const each of fc.sample(command, { seed: seed + n, numRuns: commandsEach })) {
      await act(shared, { engine: own, name: `worker-${n}`, rescueChore }, each)
    }
  })
  await Promise.all(crowding)

  assert.equal(new Set(shared.leases.map(({ id, epoch }) => `${id} ${epoch}`)).size, shared.leases.length)
  const events = await checkReplay(engine)
  assert.equal(events.filter(({ type }) => type === 'task.claimed').length, shared.leases.length)
})

interface Shared {
  readonly ids: string[]
  readonly leases: Lease[]
  advance(seconds: number): Promise<void>
}

interface Actor {
  readonly engine: Engine
  readonly name: string
  readonly rescueChore: ReturnType<typeof rescue>
}

const refusals = ['MOVE_REFUSED', 'DEDUPE_CONFLICT', 'TASK_NOT_FOUND']

/** Numbers select from what all actors know by now: any task, and mostly recent leases. */
async function act(shared: Shared, { engine, name, rescueChore }: Actor, command: Command): Promise<void> {
  const task = ({ n }: { n: number }) => shared.ids[n % shared.ids.length] ?? newId()
  const lease = ({ n, fitting }: { n: number; fitting: boolean }) => {
    const { id, epoch } = shared.leases.at(fitting ? -1 - (n % 20) : n % shared.leases.length) ?? {
      id: newId(),
      epoch: 1,
    }
    return { id, epoch }
  }
  const ask = async (asking: Promise<unknown>) => {
    await asking.catch(error => {
      if (!(error instanceof Problem) || !refusals.includes(error.code)) throw error
    })
  }
  switch (command.do) {
    case 'enqueue': {
      const made = await engine.enqueueMany(
        command.items.map(({ kind, queue, priority, key, runInSeconds = 0 }) => ({
          ...kinds[kind]!,
          ...{ type: queue, priority, runInSeconds, ...(key !== undefined && { dedupeKey: key }) },
        })),
      )
      shared.ids.push(...made.filter(({ deduplicated }) => !deduplicated).map(({ id }) => id))
      return
    }
    case 'claim': {
      const { claimed } = await engine.sync({ worker: name, queues: command.queues, claim: command.limit })
      shared.leases.push(...claimed.map(({ id, epoch }) => ({ id, epoch })))
      return
    }
    case 'report': {
      const started = command.starts.map(item => ({ ...lease(item), agoMs: item.agoMs }))
      const beats = command.beats.map(item => ({ ...lease(item), progress: item.progress ?? 0 }))
      const settled = command.settles.map(item => ({ ...lease(item), ...item.report, ranMs: item.ranMs }))
      const { refused } = await engine.sync({ worker: name, started, beats, settled })
      for (const { code, message } of refused) assert.equal(code, 'LEASE_LOST', message)
      return
    }
    case 'cancel':
      return ask(engine.cancel(task(command.pick), { mode: command.mode }))
    case 'resume':
    case 'retry':
      return ask(engine[command.do](task(command.pick)))
    case 'dead-letter':
      return ask(engine.deadLetter(task(command.pick), { reasonCode: command.reasonCode }))
    case 'redrive': {
      const ids = command.picks === 'all' ? {} : { ids: command.picks.map(task) }
      const { payload } = command
      return ask(engine.redrive({ ...ids, dryRun: command.dryRun, ...(payload !== undefined && { payload }) }))
    }
    case 'pass':
      return shared.advance(command.seconds)
    case 'rescue':
    case 'expire':
    case 'end graces': {
      const chore = { rescue: rescueChore, expire: expireTasks, 'end graces': endGraces }[command.do]
      assert.equal((await chore.run(engine.context)).failed, 0)
    }
  }
}
