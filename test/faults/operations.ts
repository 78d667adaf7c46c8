/**
 * Every operation of the engine, with the tasks that it needs and the conditions that must hold after it was requested,
 * partly lost, and requested again.
 */
import assert from 'node:assert/strict'
import { continueRedrives, countEvents, endGraces, expireTasks, retention } from '../../src/babysitter/chores.ts'
import { rescue } from '../../src/babysitter/rescue.ts'
import type { Engine } from '../../src/engine/engine.ts'
import type { TaskState } from '../../src/kernel/task.ts'
import type { HeldTask, SettledTask, SyncAnswer } from '../../src/protocol/tasks/sync.ts'
import type { TaskOptions, TaskView } from '../../src/protocol/tasks/tasks.ts'
import { eventually } from '../harness/eventually.ts'
import type { Fresh } from '../harness/fresh.ts'
import { taskIn } from '../harness/task-in.ts'

/** A separate queue and separate keys for every run. */
export interface Place {
  readonly story: Fresh
  readonly queue: string
  readonly session: string
}

export interface Scene<Answer = unknown> {
  /** The operation: once over a connection that loses something, and once more over a sound one. */
  ask(engine: Engine): Promise<Answer>
  /** How much later a babysitter checks something again that it has just checked. */
  readonly againAfterSeconds?: number
  /** The conditions that must hold after the second answer. */
  check?(tasks: readonly TaskView[], answer: Answer): void | Promise<void>
}

export type Operation = (place: Place) => Promise<Scene>

/** Makes the answer of `ask` and the argument of `check` the same type. */
const scene = <Answer>(made: Scene<Answer>) => made as Scene

const items = (queue: string, count: number) =>
  Array.from({ length: count }, (_, n) => ({ type: 'work', queue, payload: n }))

/** The states, losses and failures of all tasks, in order of creation. */
const facts = (tasks: readonly TaskView[]) => tasks.map(({ state, losses, failures }) => [state, losses, failures])

const noneRefused = (_: readonly TaskView[], { refused }: SyncAnswer) => assert.deepEqual(refused, [])

type Ending = Omit<SettledTask, 'id' | 'epoch'>

/** Settles a task in each of the given states, with one sync, and returns the expected states. */
function settling(from: readonly TaskState[], ending: Ending, to: TaskState, options: TaskOptions = {}): Operation {
  return async ({ story, queue }) => {
    const held: HeldTask[] = []
    for (const state of from) held.push(await taskIn(story, state, { ...options, queue }))
    const settled = held.map(({ id, epoch }) => ({ id, epoch, ...ending }))
    return scene({
      ask: engine => engine.sync({ worker: 'w', settled }),
      check(tasks, answer) {
        noneRefused(tasks, answer)
        assert.deepEqual(
          tasks.map(({ state }) => state),
          from.map(() => to),
        )
        const failures = ending.outcome === 'failed' ? 1 : 0
        for (const task of tasks) assert.deepEqual([task.failures, task.losses, task.epoch], [failures, 0, 1])
      },
    })
  }
}

/** A request of an operator on one task, repeated with its key. */
function controlling(
  from: TaskState,
  request: (engine: Engine, id: string, call: { idempotencyKey: string }) => Promise<TaskView>,
  to: TaskState,
): Operation {
  return async ({ story, queue }) => {
    const { id } = await taskIn(story, from, { queue })
    const before = await story.engine.task(id)
    return scene({
      ask: engine => request(engine, id, { idempotencyKey: queue }),
      check([task], answer) {
        assert.deepEqual([task?.state, answer.state, answer.seq], [to, to, task?.seq])
        assert.equal(task?.seq, before.seq + 1)
      },
    })
  }
}

const both: readonly TaskState[] = ['assigned', 'running']
const failed: Ending = { outcome: 'failed', error: { message: 'no' } }

export const operations: Record<string, Operation> = {
  'queue tasks': async ({ queue }) => ({
    ask: engine => engine.enqueueMany(items(queue, 3)),
    check: tasks => assert.ok(tasks.length === 3 || tasks.length === 6, `${tasks.length} tasks`),
  }),

  'queue tasks, some with a dedupe key': async ({ queue }) => ({
    ask: engine =>
      engine.enqueueMany(items(queue, 4).map((item, n) => (n === 0 ? item : { ...item, dedupeKey: `key ${n % 2}` }))),
    check: tasks => assert.equal(new Set(tasks.map(task => task.dedupeKey)).size, 3),
  }),

  'queue tasks with an idempotency key': async ({ queue }) =>
    scene({
      ask: engine => engine.enqueueMany(items(queue, 3), { idempotencyKey: queue }),
      check(tasks, queued) {
        assert.deepEqual(tasks.map(({ id }) => id).sort(), queued.map(({ id }) => id).sort())
      },
    }),

  claim: async ({ story, queue, session }) => {
    await story.engine.enqueueMany(items(queue, 3))
    return scene({
      ask: engine => engine.sync({ worker: 'w', session, syncId: '1', queues: [queue], claim: 10 }),
      check(tasks, { claimed }) {
        assert.deepEqual(
          tasks.map(({ id, epoch }) => [id, epoch]),
          claimed.map(({ id, epoch }) => [id, epoch]).sort(),
        )
        for (const task of tasks) assert.deepEqual([task.state, task.epoch], ['assigned', 1])
      },
    })
  },

  start: async ({ story, queue }) => {
    const started = [await taskIn(story, 'assigned', { queue }), await taskIn(story, 'assigned', { queue })]
    return scene({
      ask: engine => engine.sync({ worker: 'w', started: started.map(({ id, epoch }) => ({ id, epoch })) }),
      check(tasks, answer) {
        noneRefused(tasks, answer)
        for (const { state, seq } of tasks) assert.deepEqual([state, seq], ['running', 3])
      },
    })
  },

  'beat, with progress and a checkpoint': async ({ story, queue }) => {
    const { id, epoch } = await taskIn(story, 'running', { queue })
    return scene({
      ask: engine => engine.sync({ worker: 'w', beats: [{ id, epoch, progress: 0.5, checkpoint: { at: 5 } }] }),
      check(tasks, answer) {
        noneRefused(tasks, answer)
        assert.deepEqual([tasks[0]?.progress, tasks[0]?.checkpoint], [0.5, { at: 5 }])
      },
    })
  },

  'settle with log lines': async ({ story, queue }) => {
    const { id, epoch } = await taskIn(story, 'assigned', { queue })
    const logs = [1, 2].map(n => ({ n, message: `line ${n}` }))
    return scene({
      ask: engine => engine.sync({ worker: 'w', settled: [{ id, epoch, outcome: 'succeeded', logs }] }),
      async check(tasks, answer) {
        noneRefused(tasks, answer)
        const { items: lines } = await story.engine.logs(id)
        assert.deepEqual([tasks[0]?.state, lines.map(({ n }) => n)], ['succeeded', [1, 2]])
      },
    })
  },

  'settle as succeeded': settling(['assigned', 'assigned'], { outcome: 'succeeded', output: 1 }, 'succeeded'),
  'settle as succeeded, started or not': settling(both, { outcome: 'succeeded', output: 1 }, 'succeeded'),
  'settle as succeeded in part': settling(both, { outcome: 'succeeded', partial: true }, 'succeeded'),
  'settle as skipped': settling(both, { outcome: 'skipped', reason: 'none' }, 'skipped'),
  'settle as failed, with attempts left': settling(both, failed, 'retrying'),
  'settle as failed, for the last time': settling(both, failed, 'dead_lettered', { retry: { attempts: 1 } }),
  'settle as cancelled': settling(both, { outcome: 'cancelled' }, 'cancelled'),
  'settle as released': settling(both, { outcome: 'released' }, 'retrying'),
  'settle as dead letter': settling(both, { outcome: 'dead_lettered', error: { message: 'odd' } }, 'dead_lettered'),

  'cancel softly': controlling('running', (engine, id, call) => engine.cancel(id, call), 'running'),
  'cancel hard': controlling(
    'running',
    (engine, id, call) => engine.cancel(id, { ...call, mode: 'hard' }),
    'cancelled',
  ),
  'cancel what waits': controlling('queued', (engine, id, call) => engine.cancel(id, call), 'cancelled'),
  resume: controlling('cancelled', (engine, id, call) => engine.resume(id, call), 'queued'),
  retry: controlling('failed', (engine, id, call) => engine.retry(id, call), 'queued'),
  'dead-letter': controlling(
    'assigned',
    (engine, id, call) => engine.deadLetter(id, { ...call, reasonCode: 'policy_violation' }),
    'dead_lettered',
  ),

  'redrive with another payload': async ({ story, queue }) => {
    const ids = [
      (await taskIn(story, 'dead_lettered', { queue, payload: 'bad' })).id,
      (await taskIn(story, 'dead_lettered', { queue, payload: 'bad' })).id,
    ]
    return {
      ask: engine => engine.redrive({ ids, payload: 'mended' }),
      async check(tasks) {
        for (const { id, state, round, payload } of tasks) {
          assert.deepEqual([state, round, payload], ['queued', 2, 'mended'])
          const { items: events } = await story.engine.taskEvents(id)
          assert.equal(events.filter(({ type }) => type === 'task.payload_edited').length, 1)
        }
      },
    }
  },

  'redrive under a key': async ({ story, queue }) => {
    const ids = [
      (await taskIn(story, 'dead_lettered', { queue })).id,
      (await taskIn(story, 'dead_lettered', { queue })).id,
    ]
    return {
      ask: engine => engine.redrive({ ids }, { idempotencyKey: queue }),
      async check() {
        // The request was accepted once. The babysitter completes what its first process did not.
        await story.advance(4)
        await continueRedrives().run(story.engine.context)
        const back = await Promise.all(ids.map(id => story.engine.task(id)))
        assert.deepEqual(
          back.map(({ state, round }) => [state, round]),
          ids.map(() => ['queued', 2]),
        )
      },
    }
  },

  rescue: async ({ story, queue }) => {
    for (const state of both) await taskIn(story, state, { queue })
    await story.advance(100)
    return {
      ask: engine => rescue({ beginsBlind: false }).run(engine.context),
      againAfterSeconds: 2,
      check: tasks =>
        assert.deepEqual(facts(tasks), [
          ['retrying', 0, 0],
          ['retrying', 1, 0],
        ]),
    }
  },

  'time out': async ({ story, queue }) => {
    await taskIn(story, 'running', { queue, timeoutSeconds: 5 })
    await story.advance(10)
    return {
      ask: engine => rescue({ beginsBlind: false }).run(engine.context),
      againAfterSeconds: 2,
      check: tasks => assert.deepEqual(facts(tasks), [['retrying', 0, 1]]),
    }
  },

  expire: async ({ story, queue }) => {
    for (const state of ['running', 'queued'] as const) await taskIn(story, state, { queue, expireInSeconds: 5 })
    await story.advance(10)
    return {
      ask: engine => expireTasks.run(engine.context),
      check: tasks =>
        assert.deepEqual(facts(tasks), [
          ['expired', 0, 0],
          ['expired', 0, 0],
        ]),
    }
  },

  'end a grace': async ({ story, queue }) => {
    const { id } = await taskIn(story, 'running', { queue, graceSeconds: 5, leaseSeconds: 60, heartbeatSeconds: null })
    await story.engine.cancel(id)
    await story.advance(10)
    return {
      ask: engine => endGraces.run(engine.context),
      check: tasks => assert.deepEqual(facts(tasks), [['cancelled', 0, 0]]),
    }
  },

  'count what happened': async ({ story, queue }) => {
    const { id } = await taskIn(story, 'succeeded', { type: queue, queue })
    return {
      ask: engine => countEvents.run(engine.context),
      async check() {
        const counted = await eventually('what other tests do is over, and all is counted', async () => {
          await countEvents.run(story.engine.context)
          const moves = (await story.engine.internals.totals()).moves.filter(({ type }) => type === queue)
          return moves.some(({ what }) => what === 'succeeded') && moves
        })
        for (const { what, n } of counted) assert.equal(n, 1, `${id} ${what}`)
      },
    }
  },

  'remove what is old': async ({ story, queue }) => {
    for (const state of ['succeeded', 'failed'] as const) await taskIn(story, state, { queue, keepSeconds: 5 })
    await story.advance(10)
    return { ask: engine => retention().run(engine.context), check: tasks => assert.deepEqual(tasks, []) }
  },
}
