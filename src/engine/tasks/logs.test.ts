import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { taskIn } from '../../../test/harness/task-in.ts'
import { retention } from '../../babysitter/chores.ts'
import { rescue } from '../../babysitter/rescue.ts'
import { type LogLine, logLimits } from '../../protocol/tasks/logs.ts'

const line = (n: number, message = `line ${n}`): LogLine => ({ n, message })
const textsOf = async ({ engine }: Fresh, id: string) =>
  (await engine.logs(id)).items.map(({ epoch, n, message }) => `${epoch}.${n} ${message}`)

test('what a handler logs is kept with its time, level and facts, and read in order', async t => {
  const run = await fresh(t)
  const { id, epoch } = await taskIn(run, 'running')
  await run.advance(1000)
  const logs: LogLine[] = [
    { n: 1, agoMs: 500_000, level: 'debug', message: 'begun' },
    { n: 2, message: 'fetched', facts: { rows: 12, of: 'é"\\' } },
  ]
  assert.deepEqual((await run.sync({ beats: [{ id, epoch, logs }] })).refused, [])
  await run.sync({ settled: [{ id, epoch, outcome: 'succeeded', logs: [{ n: 3, level: 'warn', message: '' }] }] })
  const { items, next } = await run.engine.logs(id)
  assert.equal(next, null)
  assert.deepEqual(
    items.map(({ at: _, ...rest }) => rest),
    [
      { epoch: 1, n: 1, level: 'debug', message: 'begun', facts: null },
      { epoch: 1, n: 2, level: 'info', message: 'fetched', facts: { rows: 12, of: 'é"\\' } },
      { epoch: 1, n: 3, level: 'warn', message: '', facts: null },
    ],
  )
  const apart = (Date.parse(items[1]!.at) - Date.parse(items[0]!.at)) / 1000
  assert.ok(apart >= 499 && apart < 600, `${apart}`)
  assert.equal((await run.engine.task(id)).state, 'succeeded')
})

test("lines of a worker that lost its task are not kept, and never stand among the next one's", async t => {
  const run = await fresh(t)
  const { id, queue } = await taskIn(run, 'running', { retry: { delaySeconds: 0 } })
  await run.sync({ beats: [{ id, epoch: 1, logs: [line(1, 'still mine')] }] })
  await run.advance(1000)
  await rescue({ beginsBlind: false }).run(run.engine.context)
  await run.sync({ beats: [{ id, epoch: 1, logs: [line(2, 'nobody holds it now')] }] })
  assert.equal((await run.sync({ queues: [queue], claim: 1 })).claimed[0]!.epoch, 2)
  await run.sync({ beats: [{ id, epoch: 2, logs: [line(1, 'the next one')] }] })
  const late = await run.sync({
    beats: [{ id, epoch: 1, logs: [line(2, 'too late')] }],
    settled: [{ id, epoch: 1, outcome: 'succeeded', logs: [line(3, 'far too late')] }],
  })
  assert.equal(late.refused[0]!.code, 'LEASE_LOST')
  assert.deepEqual(await textsOf(run, id), ['1.1 still mine', '2.1 the next one'])
  assert.deepEqual(
    (await run.engine.logs(id, { epoch: 2 })).items.map(({ message }) => message),
    ['the next one'],
  )
})

test('a report that is sent again, its answer lost, doubles no line', async t => {
  const run = await fresh(t)
  const { id, epoch } = await taskIn(run, 'assigned')
  const settled = [{ id, epoch, outcome: 'succeeded' as const, logs: [line(1), line(2)] }]
  await run.sync({ beats: [{ id, epoch, logs: [line(1)] }] })
  for (const _ of [1, 2]) assert.deepEqual((await run.sync({ settled })).refused, [])
  assert.deepEqual(await textsOf(run, id), ['1.1 line 1', '1.2 line 2'])
})

test('lines go when they are old, and with their task at the latest', async t => {
  const run = await fresh(t)
  const [kept, brief] = [await taskIn(run, 'running'), await taskIn(run, 'running', { keepSeconds: 100 })]
  for (const { id, epoch } of [kept, brief]) {
    await run.sync({ settled: [{ id, epoch, outcome: 'succeeded', logs: [line(1)] }] })
  }
  const chore = retention({ keepLogSeconds: 1000 })
  const left = async () => {
    await chore.run(run.engine.context)
    return (await run.sql<{ taskId: string }>`select task_id from pawl.log`).map(({ taskId }) => taskId)
  }
  assert.equal((await left()).length, 2)
  await run.advance(200)
  assert.deepEqual(await left(), [kept.id])
  await run.advance(1000)
  assert.deepEqual(await left(), [])
  assert.equal((await run.engine.task(kept.id)).state, 'succeeded')
})

test('whoever reads on behind the last line gets what was logged since, and nothing twice', async t => {
  const run = await fresh(t)
  const { id, epoch, queue } = await taskIn(run, 'running', { retry: { delaySeconds: 0 } })
  const none = await run.engine.logs(id)
  await run.sync({ beats: [{ id, epoch, logs: [line(1), line(2)] }] })
  const first = await run.engine.logs(id, { cursor: none.behind })
  const still = await run.engine.logs(id, { cursor: first.behind })
  await run.sync({ settled: [{ id, epoch, outcome: 'failed', error: { message: 'no' }, logs: [line(3)] }] })
  assert.equal((await run.sync({ queues: [queue], claim: 1 })).claimed[0]!.epoch, 2)
  await run.sync({ beats: [{ id, epoch: 2, logs: [line(1)] }] })
  const last = await run.engine.logs(id, { cursor: still.behind })
  assert.deepEqual(
    [none, first, still, last].map(({ items }) => items.map(({ epoch, n }) => `${epoch}.${n}`)),
    [[], ['1.1', '1.2'], [], ['1.3', '2.1']],
  )
})

test('a long log is read a page at a time, and none is read twice', async t => {
  const run = await fresh(t)
  const { id, epoch } = await taskIn(run, 'running')
  const logs = Array.from({ length: 25 }, (_, index) => line(index + 1))
  await run.sync({ beats: [{ id, epoch, logs }] })
  const seen: number[] = []
  for (let cursor: string | undefined, pages = 0; pages < 3; pages++) {
    const { items, next } = await run.engine.logs(id, { limit: 10, ...(cursor && { cursor }) })
    seen.push(...items.map(({ n }) => n))
    cursor = next ?? undefined
    assert.equal(next === null, pages === 2)
  }
  assert.deepEqual(
    seen,
    logs.map(({ n }) => n),
  )
})

test('an attempt cannot fill the store with lines, however many its worker sends', async t => {
  const run = await fresh(t)
  const { id, epoch } = await taskIn(run, 'running')
  for (let from = 1; from < 2500; from += 1000) {
    const logs = Array.from({ length: 1000 }, (_, index) => line(from + index, 'x'.repeat(10_000)))
    assert.deepEqual((await run.sync({ beats: [{ id, epoch, logs }] })).refused, [])
  }
  const [row] = await run.sql<{ n: number; longest: number }>`
    select count(*) as n, max(length(message)) as longest from pawl.log`
  assert.deepEqual(row, { n: logLimits.lines + 1, longest: logLimits.messageLength })
})

test('a line that the store cannot keep never costs the result that it came with', async t => {
  const run = await fresh(t)
  const { id, epoch } = await taskIn(run, 'running')
  const logs = [
    { n: 1, message: 'a \0 and half a pair \ud800' },
    { n: 2, message: 'deep', facts: JSON.parse(`${'{"a":'.repeat(150)}1${'}'.repeat(150)}`) },
    { n: 3, message: 'large', facts: { text: 'x'.repeat(5000) } },
    { n: 4, message: 'NUL', facts: { text: '\0' } },
  ]
  assert.deepEqual((await run.sync({ settled: [{ id, epoch, outcome: 'succeeded', logs }] })).refused, [])
  assert.equal((await run.engine.task(id)).state, 'succeeded')
  const { items } = await run.engine.logs(id)
  assert.equal(items[0]!.message, 'a \uFFFD and half a pair \uFFFD')
  assert.deepEqual(
    items.slice(1).map(({ facts }) => Object.keys(facts!)),
    [['dropped'], ['dropped'], ['dropped']],
  )
})

test('a sync without log lines asks the store for no more than before', async t => {
  const run = await fresh(t)
  const asked: string[] = []
  const { sql } = run.engine.context
  const counting = Object.assign((strings: TemplateStringsArray, ...values: never[]) => {
    asked.push(strings.join('?'))
    return sql(strings, ...values)
  }, sql)
  const { sync } = await import('./sync.ts')
  const context = { ...run.engine.context, sql: counting as typeof sql }
  const tasks = [await taskIn(run, 'assigned'), await taskIn(run, 'assigned')]
  await sync(context, { worker: 'w', settled: [{ ...leaseOf(tasks[0]!), outcome: 'succeeded' }] })
  assert.equal(asked.length, 1)
  const logs = [line(1)]
  await sync(context, { worker: 'w', settled: [{ ...leaseOf(tasks[1]!), outcome: 'succeeded', logs }] })
  assert.equal(asked.length, 3)
})

const leaseOf = ({ id, epoch }: { id: string; epoch: number }) => ({ id, epoch })

test('a log of odd shape is refused and says why, and its neighbours are kept', async t => {
  const run = await fresh(t)
  const [odd, good] = [await taskIn(run, 'running'), await taskIn(run, 'running')]
  const faults: [unknown, RegExp][] = [
    ['text', /list of at most/],
    [[{ message: 'no number' }], /have a \\?"n\\?"/],
    [[{ n: 1, message: 'x', level: 'fatal' }], /one of/],
    [[{ n: 1, message: 'x', fact: {} }], /did you mean \\?"facts/],
    [[{ n: 1, message: 5 }], /be a string/],
  ]
  for (const [logs, why] of faults) {
    const beats = [
      { ...leaseOf(odd), logs: logs as never },
      { ...leaseOf(good), logs: [line(1)] },
    ]
    const { refused } = await run.sync({ beats })
    assert.deepEqual([refused.length, refused[0]!.id], [1, odd.id])
    assert.match(refused[0]!.message, why)
  }
  assert.deepEqual(await textsOf(run, odd.id), [])
  assert.deepEqual(await textsOf(run, good.id), ['1.1 line 1'])
  await assert.rejects(run.engine.logs('00000000-0000-7000-8000-000000000000'), { code: 'TASK_NOT_FOUND' })
})
