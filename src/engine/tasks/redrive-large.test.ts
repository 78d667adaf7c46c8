import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needsServer } from '../../../test/harness/databases.ts'
import { eventually } from '../../../test/harness/eventually.ts'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { taskIn } from '../../../test/harness/task-in.ts'
import { continueRedrives, retention } from '../../babysitter/chores.ts'
import { type Engine, openEngine } from '../engine.ts'

/** Creates this number of dead letters in one queue, oldest first. */
async function deadLetters({ engine }: Fresh, count: number, queue = 'a'): Promise<string[]> {
  const items = Array.from({ length: count }, (_, payload) => ({ type: 'work', queue, payload }))
  const queued = await engine.enqueueMany(items)
  await deadLetterAll(engine, queue)
  return queued.map(({ id }) => id)
}

async function deadLetterAll(engine: Engine, queue: string): Promise<void> {
  const error = { message: 'odd', reasonCode: 'parse_error' } as const
  for (;;) {
    const { claimed } = await engine.sync({ worker: 'w', queues: [queue], claim: 1000 })
    if (claimed.length === 0) return
    const settled = claimed.map(({ id, epoch }) => ({ id, epoch, outcome: 'dead_lettered', error }) as const)
    await engine.sync({ worker: 'w', settled })
  }
}

/** Counts tasks by round: none may be redriven twice. */
async function tasksByRound({ sql }: Fresh): Promise<Record<number, number>> {
  const rows = await sql<{ round: number; n: number }>`select round, count(*)::int as n from pawl.task group by round`
  return Object.fromEntries(rows.map(({ round, n }) => [round, n]))
}

const waitUntilDone = (engine: Engine, id: string) =>
  eventually('the redrive is done', async () => {
    const progress = await engine.redriveProgress(id)
    return progress.state === 'done' && progress
  })

test('a large redrive goes on after its answer, and how far it has come can be read', async t => {
  const run = await fresh(t)
  const ids = await deadLetters(run, 2300)
  const answer = await run.engine.redrive({ queue: 'a', reason: 'mended' }, { actor: 'user:ada' })
  assert.deepEqual([answer.state, answer.total, answer.dryRun], ['running', 2300, false])
  assert.deepEqual(answer.redriven, ids.slice(0, 1000), 'the oldest come first')
  const progress = await waitUntilDone(run.engine, answer.id!)
  const { createdAt: _, endedAt, ...view } = progress
  const counts = { total: 2300, redriven: 2300, refused: 0, refusals: [] }
  assert.deepEqual(view, { id: answer.id, state: 'done', actor: 'user:ada', reason: 'mended', ...counts })
  assert.ok(endedAt)
  assert.deepEqual(await tasksByRound(run), { 2: 2300 })
})

test("what a caller's transaction does not wait for is done once it has committed", async t => {
  const run = await fresh(t)
  await deadLetters(run, 1700)
  const { engine } = run
  const { id, state, redriven } = await engine.transaction(tx => engine.redrive({}, { tx }))
  assert.deepEqual([state, redriven.length], ['running', 1000])
  assert.deepEqual(await tasksByRound(run), { 1: 700, 2: 1000 })
  await run.advance(4)
  await continueRedrives().run(engine.context)
  assert.equal((await engine.redriveProgress(id!)).state, 'done')
  assert.deepEqual(await tasksByRound(run), { 2: 1700 })
})

test(
  'if the process dies in the middle of a redrive, babysitters go on with it, and take no letter twice',
  needsServer(),
  async t => {
    const run = await fresh(t)
    await deadLetters(run, 4000)
    const [dying, one, two] = await Promise.all(
      [1, 2, 3].map(() => openEngine({ database: run.url!, schema: run.schema })),
    )
    t.after(() => Promise.all([one!.close(), two!.close()]))
    const { id } = await dying!.redrive({})
    await dying!.close()
    const left = await run.engine.redriveProgress(id!)
    assert.equal(left.state, 'running', 'it died too late to show anything')
    await run.advance(4)
    await Promise.all([one, two].map(engine => continueRedrives().run(engine!.context)))
    const { state, redriven, refused } = await run.engine.redriveProgress(id!)
    assert.deepEqual([state, redriven, refused], ['done', 4000, 0])
    assert.deepEqual(await tasksByRound(run), { 2: 4000 })
  },
)

test('at a rate every letter has its moment, also those that somebody else goes on with later', async t => {
  const run = await fresh(t)
  const ids = await deadLetters(run, 1200)
  const { engine } = run
  const { id } = await engine.transaction(tx => engine.redrive({ ratePerSecond: 2 }, { tx }))
  await run.advance(550)
  await continueRedrives().run(engine.context)
  const { createdAt } = await engine.redriveProgress(id!)
  const secondsAfter = async (index: number) =>
    (Date.parse((await engine.task(ids[index]!)).runAt) - Date.parse(createdAt)) / 1000
  for (const index of [0, 1, 700, 999, 1150, 1199]) {
    const late = (await secondsAfter(index)) - index / 2
    assert.ok(late >= -0.01 && late < 1, `letter ${index} comes ${late} s late`)
  }
  const overdue = await secondsAfter(1000)
  assert.ok(overdue >= 550 && overdue < 560, `its moment had passed: it comes at once, not after ${overdue} s`)
})

test('one letter that cannot be written is refused, and keeps none of the others from coming back', async t => {
  const run = await fresh(t)
  const ids = await deadLetters(run, 20)
  const poison = ids[7]!
  await run.sql.script(`
    create function pawl.poison() returns trigger language plpgsql as $$ begin raise exception 'poison'; end $$;
    create trigger poison before update on pawl.task for each row when (old.id = '${poison}')
      execute function pawl.poison()`)
  const { id, redriven, refused } = await run.engine.redrive({})
  assert.deepEqual(
    redriven,
    ids.filter(each => each !== poison),
  )
  assert.deepEqual(
    refused.map(each => [each.id, each.message]),
    [[poison, 'poison']],
  )
  assert.deepEqual((await run.engine.redriveProgress(id!)).refusals, refused)
})

test('letters of one job come back together: its stage and job open one round, not one for each', async t => {
  const run = await fresh(t)
  const { engine } = run
  const payloads = Array.from({ length: 30 }, (_, index) => index)
  const alone = await taskIn(run, 'dead_lettered')
  const job = await engine.submit({
    name: 'j',
    stages: [
      { name: 'a', task: 'a', payloads, failFast: false },
      { name: 'b', task: 'b' },
    ],
  })
  await deadLetterAll(engine, 'a')
  assert.equal((await engine.job(job.id)).state, 'failed')
  const other = await taskIn(run, 'dead_lettered')
  const { total, redriven } = await engine.redrive({})
  assert.deepEqual([total, redriven.length], [32, 32])
  const { round, state, stages } = await engine.job(job.id)
  assert.deepEqual([round, state, stages[0]!.round, stages[0]!.state], [2, 'pending', 2, 'pending'])
  assert.equal((await run.sync({ queues: ['a'], claim: 100 })).claimed.length, 30)
  for (const { id } of [alone, other]) assert.equal((await engine.task(id)).state, 'queued')
})

test('a letter that dies again while its redrive goes on is not brought back a second time', async t => {
  const run = await fresh(t)
  await deadLetters(run, 1500)
  const { engine } = run
  const { id } = await engine.transaction(tx => engine.redrive({}, { tx }))
  await deadLetterAll(engine, 'a')
  await deadLetters(run, 5)
  await run.advance(4)
  await continueRedrives().run(engine.context)
  assert.deepEqual((await engine.redriveProgress(id!)).redriven, 1500)
  assert.deepEqual(await tasksByRound(run), { 1: 5, 2: 1500 })
})

test('of letters with the same dedupeKey one comes back, and a dry run says so', async t => {
  const run = await fresh(t)
  const one = await taskIn(run, 'dead_lettered', { queue: 'a', dedupeKey: 'k' })
  const two = await taskIn(run, 'dead_lettered', { queue: 'a', dedupeKey: 'k' })
  const dry = await run.engine.redrive({ dryRun: true })
  const wet = await run.engine.redrive({})
  assert.deepEqual(wet.redriven, [one.id])
  assert.deepEqual(
    wet.refused.map(({ id, code }) => [id, code]),
    [[two.id, 'DEDUPE_CONFLICT']],
  )
  assert.deepEqual([dry.redriven, dry.refused], [wet.redriven, wet.refused])
})

test('a redrive of nothing is done at once', async t => {
  const run = await fresh(t)
  const { id, state, total } = await run.engine.redrive({})
  assert.deepEqual([state, total], ['done', 0])
  assert.equal((await run.engine.redriveProgress(id!)).state, 'done')
})

test('how a redrive went is kept for 14 days, and one that is not done for ever', async t => {
  const run = await fresh(t)
  await deadLetters(run, 1001)
  const { engine } = run
  const open = await engine.transaction(tx => engine.redrive({ queue: 'a' }, { tx }))
  const ended = await engine.redrive({ queue: 'b' })
  await run.advance(13 * 86_400)
  await retention().run(engine.context)
  assert.equal((await engine.redriveProgress(ended.id!)).state, 'done')
  await run.advance(2 * 86_400)
  await retention().run(engine.context)
  await assert.rejects(engine.redriveProgress(ended.id!), { code: 'REDRIVE_NOT_FOUND', status: 404 })
  assert.equal((await engine.redriveProgress(open.id!)).state, 'running')
  await assert.rejects(engine.redriveProgress('x'), { code: 'REDRIVE_NOT_FOUND' })
})

test('dead letters are listed by queue, type and reason, newest first, in pages', async t => {
  const run = await fresh(t)
  const { engine } = run
  const ids = await deadLetters(run, 3)
  const other = await taskIn(run, 'queued', { queue: 'b', type: 'other' })
  await engine.deadLetter(other.id, { reasonCode: 'timeout' })
  await taskIn(run, 'failed')
  const list = async (query: object) => (await engine.deadLetters(query)).items.map(({ id }) => id)
  assert.deepEqual(await list({}), [other.id, ...ids.toReversed()])
  assert.deepEqual(await list({ queue: 'b' }), [other.id])
  assert.deepEqual(await list({ type: 'work' }), ids.toReversed())
  assert.deepEqual(await list({ reasonCode: 'timeout' }), [other.id])
  const { items, next } = await engine.deadLetters({ queue: 'a', limit: 2 })
  assert.equal(items.length, 2)
  assert.deepEqual(await list({ queue: 'a', limit: 2, cursor: next! }), [ids[0]])
  await assert.rejects(list({ state: 'failed' }), { code: 'OPTION_UNKNOWN' })
})
