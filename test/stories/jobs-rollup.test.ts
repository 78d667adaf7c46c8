/** The final states of stages and jobs: every combination of their children, through the engine. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expireTasks } from '../../src/babysitter/chores.ts'
import { advanceJob } from '../../src/engine/jobs/advance-job.ts'
import type { StageSpec } from '../../src/spec/job-spec.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { claim, reportOf, say, statesOf, type Word, workOff } from '../harness/jobs.ts'

const bounded = { timeout: 600_000 }
const taskWords = ['succeeded', 'partial', 'skipped', 'failed', 'dead_lettered', 'cancelled', 'expired'] as const
type TaskWord = (typeof taskWords)[number]
const badWords: readonly TaskWord[] = ['failed', 'dead_lettered', 'cancelled', 'expired']
const tolerances = [{}, { count: 1 }, { percent: 50 }, { percent: 100 }] as const

/** Combinations of one to three, regardless of order. */
function mixtures<T>(words: readonly T[], most: number): T[][] {
  if (most === 0) return [[]]
  const smaller = words.flatMap((word, at) => mixtures(words.slice(at), most - 1).map(rest => [word, ...rest]))
  return [[], ...smaller].filter((each, index, all) => all.findIndex(one => `${one}` === `${each}`) === index)
}

/** As in the design. */
function stageEnd(words: readonly TaskWord[], tolerate: { count?: number; percent?: number }): string {
  const bad = words.filter(word => badWords.includes(word)).length
  if (bad === 0) return words.includes('partial') ? 'partial' : 'succeeded'
  const bears = bad <= (tolerate.count ?? 0) || bad <= (words.length * (tolerate.percent ?? 0)) / 100
  return bears && bad < words.length ? 'partial' : 'failed'
}

/** Claims everything, and ends each task as its payload says. */
async function makeEnd(f: Fresh, queue: string): Promise<void> {
  for (let tasks = await claim(f, [queue], 1000); tasks.length > 0; tasks = await claim(f, [queue], 1000)) {
    const settled = tasks
      .filter(({ payload }) => payload !== 'expired')
      .map(({ id, epoch, payload }) => ({ id, epoch, ...reportOf(payload as Word) }))
    assert.deepEqual((await f.sync({ settled })).refused, [])
  }
}

test('every mixture of up to three tasks names its stage, with every tolerance', bounded, async t => {
  const f = await fresh(t)
  const expected: string[] = []
  const stages: StageSpec[] = []
  for (const words of mixtures(taskWords, 3)) {
    for (const tolerate of tolerances) {
      const name = `${stages.length} ${words} ${JSON.stringify(tolerate)}`
      const common = { name, task: 'work', needs: [], failFast: false, onFailure: 'continue' } as const
      stages.push({
        ...common,
        payloads: words,
        tolerate,
        expireInSeconds: 5000,
        leaseSeconds: 9000,
        heartbeatSeconds: null,
      })
      expected.push(`${name}: ${stageEnd(words, tolerate)}`)
    }
  }
  const { id } = await f.engine.submit({ name: 'j', stages })
  await makeEnd(f, 'work')
  await f.advance(5001)
  // A read may find only what has ended so far; the next one continues.
  for (let turn = 0; turn < 10; turn++) await expireTasks.run(f.engine.context)
  const job = await f.engine.job(id)
  assert.deepEqual(
    job.stages.map(({ name, state }) => `${name}: ${state}`),
    expected,
  )
  assert.equal(job.state, 'partial')
})

const stageWords = ['succeeded', 'partial', 'skipped', 'failed?', 'cancelled?', 'failed'] as const
type StageWord = (typeof stageWords)[number]

function stageThatEnds(word: StageWord, index: number): StageSpec {
  const onFailure = word.endsWith('?') ? 'continue' : 'fail'
  const spec: StageSpec = { name: `s${index}`, task: 'work', queue: word, needs: [], onFailure }
  return word === 'skipped' ? { ...spec, when: 'false' } : spec
}

/** As in the design; `?` is a stage with onFailure `continue`. */
function jobEnd(words: readonly StageWord[]): string {
  const counted: StageWord[] = words.filter(word => word !== 'skipped')
  const has = (...some: StageWord[]) => some.some(word => counted.includes(word))
  if (has('failed')) return 'failed'
  if (!has('failed?', 'cancelled?', 'partial')) return 'succeeded'
  return has('succeeded', 'partial') ? 'partial' : 'failed'
}

test('every mixture of stages names its job', bounded, async t => {
  const f = await fresh(t)
  const jobs: { id: string; words: readonly StageWord[]; stageIds: string[] }[] = []
  for (let mixture = 0; mixture < 2 ** stageWords.length; mixture++) {
    const words = stageWords.filter((_, index) => (mixture >> index) & 1)
    const { id, stages } = await f.engine.submit({ name: `${mixture}`, stages: words.map(stageThatEnds) })
    jobs.push({ id, words, stageIds: stages.map(stage => stage.id) })
  }
  for (const word of ['succeeded', 'partial', 'failed?'] as const) await workOff(f, word, wordFor(word))
  for (const { words, stageIds } of jobs) {
    const stageId = stageIds[words.indexOf('cancelled?')]
    if (stageId !== undefined) await f.engine.cancelStage(stageId)
  }
  // The decisive stages go bad last, when the others have ended by themselves.
  await workOff(f, 'failed', 'failed')
  for (const { id, words } of jobs) assert.equal((await f.engine.job(id)).state, jobEnd(words), words.join())
})

const wordFor = (word: 'succeeded' | 'partial' | 'failed?'): Word => (word === 'failed?' ? 'failed' : word)

test('looking again finds nothing to change, whatever state a job is in', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({
    name: 'j',
    stages: [
      { name: 'a', task: 'a', payloads: [1, 2], compensate: { task: 'undo' } },
      { name: 'b', task: 'b', needs: ['a'], gate: true },
      { name: 'c', task: 'c', needs: ['a'], when: 'false' },
      { name: 'd', task: 'd', needs: ['a'], open: true },
    ],
  })
  const seen: string[] = []
  const turn = async () => {
    const before = await f.engine.job(id)
    await advanceJob(f.engine.context, id, 'test')
    const { changedAt: _, ...after } = await f.engine.job(id)
    assert.deepEqual({ ...after, changedAt: before.changedAt }, before)
    seen.push((await statesOf(f, id)).split(':')[0]!)
  }
  await turn()
  const [one, two] = await claim(f, ['a'])
  await f.sync({ started: [{ id: one!.id, epoch: one!.epoch }] })
  await turn()
  await f.engine.pauseJob(id)
  await turn()
  await f.engine.resumeJob(id)
  const settled = [one!, two!].map(task => ({ id: task.id, epoch: task.epoch, outcome: 'succeeded' as const }))
  await f.sync({ settled })
  const { stages } = await f.engine.job(id)
  await f.engine.addTasks(stages[3]!.id, [{ payload: 1 }])
  const [held] = await claim(f, ['d'])
  await turn()
  await f.engine.reject(stages[1]!.id)
  await turn()
  await f.sync({ settled: [{ id: held!.id, epoch: held!.epoch, outcome: 'released' }] })
  await turn()
  assert.equal(await workOff(f, 'undo'), 2)
  await turn()
  assert.deepEqual(seen, ['pending', 'running', 'paused', 'running', 'stopping', 'compensating', 'failed'])
})

test('a share is of the tasks that a stage has then: more tasks bear more bad ones', async t => {
  const f = await fresh(t)
  const stage: StageSpec = { name: 'a', task: 'a', payloads: [1, 2, 3, 4], open: true, tolerate: { percent: 25 } }
  const { id, stages } = await f.engine.submit({ name: 'j', stages: [stage] })
  const tasks = await claim(f, ['a'])
  await say(f, tasks.slice(0, 1), 'failed')
  await f.engine.addTasks(
    stages[0]!.id,
    [5, 6, 7, 8].map(payload => ({ payload })),
  )
  await say(f, tasks.slice(1, 2), 'failed')
  assert.equal(await statesOf(f, id), 'running: a running')
  await say(f, tasks.slice(2), 'succeeded')
  await workOff(f, 'a')
  await f.engine.sealStage(stages[0]!.id)
  assert.equal(await statesOf(f, id), 'partial: a partial')
})

test('the output of a stage with one task is that of its task, else a list by index with null where there is none', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({
    name: 'j',
    stages: [
      { name: 'one', task: 'one' },
      { name: 'many', task: 'many', payloads: [0, 1, 2], tolerate: { count: 1 } },
      { name: 'listed', task: 'many', payloads: [0] },
      {
        name: 'last',
        task: 'last',
        when: `stages.one.output == 7 && stages.many.output == [0, null, 20]
          && stages.listed.output == [0] && stages.many.state == "partial"`,
      },
    ],
  })
  await workOff(f, 'one', { outcome: 'succeeded', output: 7 })
  const tasks = await claim(f, ['many'])
  for (const task of [...tasks].reverse()) {
    const n = task.payload as number
    await say(f, [task], n === 1 ? 'failed' : { outcome: 'succeeded', output: n * 10 })
  }
  await workOff(f, 'many', { outcome: 'succeeded', output: 0 })
  assert.equal(await workOff(f, 'last'), 1)
  assert.equal(await statesOf(f, id), 'partial: one succeeded, many partial, listed succeeded, last succeeded')
})

test('a task whose time to live passes before its stage opens is bad when it does', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({
    name: 'j',
    stages: [
      { name: 'a', task: 'a', leaseSeconds: 9000, heartbeatSeconds: null },
      { name: 'b', task: 'b', payloads: [1, 2], expireInSeconds: 500 },
    ],
  })
  const [one] = await claim(f, ['a'])
  await f.advance(501)
  await expireTasks.run(f.engine.context)
  assert.equal(await statesOf(f, id), 'pending: a pending, b created')
  await say(f, [one!], 'succeeded')
  assert.equal(await statesOf(f, id), 'failed: a succeeded, b failed')
})
