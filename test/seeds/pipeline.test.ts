/** Seed 003, the async pipeline: its transition table, every path through its flowchart, and its rules for cancellation. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { parse } from 'yaml'
import { jobDeadlines } from '../../src/babysitter/job-chores.ts'
import type { JobSpec } from '../../src/spec/job-spec.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { begin, movesIn } from '../harness/job-in.ts'
import { claim, say, stageOf, type Word, workOff } from '../harness/jobs.ts'

const example = readFileSync(join(import.meta.dirname, '../../..', 'examples/async-pipeline/pipeline.yaml'), 'utf8')
const names = ['ingest', 'classify', 'neutralize', 'brief', 'evaluation', 'optimization'] as const
type Name = (typeof names)[number]

const all = { enable_evaluation: true, enable_auto_optimize: true }
const evaluated = { enable_evaluation: true, enable_auto_optimize: false }
const plain = { enable_evaluation: false, enable_auto_optimize: false }
const unevaluated = { enable_evaluation: false, enable_auto_optimize: true }

async function submitted(t: TestContext, input: unknown) {
  const f = await fresh(t)
  const { id } = await f.engine.submit({ ...(parse(example) as JobSpec), input })
  return { f, id }
}

/** Runs the stages in order, and returns those that had tasks. */
async function work(f: Fresh, stages: readonly Name[], word: (name: Name) => Word = () => 'succeeded') {
  const ran: Name[] = []
  for (const name of stages) if ((await workOff(f, name, word(name))) > 0) ran.push(name)
  return ran
}

const every = <T>(value: T) => Object.fromEntries(names.map(name => [name, value])) as Record<Name, T>

const without = (all: object, name: Name) => Object.fromEntries(Object.entries(all).filter(([key]) => key !== name))

async function ends({ engine }: Fresh, id: string): Promise<Record<string, string>> {
  const { state, stages, endedAt } = await engine.job(id)
  assert.equal(endedAt !== null, true, 'finished_at is recorded')
  const work = stages.filter(({ task }) => task !== null)
  return { job: state, ...Object.fromEntries(work.map(stage => [stage.name, stage.state])) }
}

test('pipeline 003, job: [*] → PENDING → RUNNING → COMPLETED, when all stages succeed', async t => {
  const { f, id } = await submitted(t, all)
  assert.equal((await f.engine.job(id)).state, 'pending')
  const [first] = await begin(f, 'ingest')
  assert.equal((await f.engine.job(id)).state, 'running')
  await say(f, [first!], 'succeeded')
  assert.deepEqual(await work(f, names), names.slice(1))
  assert.deepEqual(await ends(f, id), { job: 'succeeded', ...every('succeeded') })
  const events = await f.engine.jobEvents(id)
  assert.deepEqual(movesIn(events), ['* → created', 'created → pending', 'pending → running', 'running → succeeded'])
})

/** Paths to the end: the input, the outcomes of the stages, and that of the job. Stages that are not named succeed. */
const skippedBoth = { evaluation: 'skipped', optimization: 'skipped' }
const paths: [title: string, input: object, outcomes: Partial<Record<Name, Word>>, job: string, stages: object][] = [
  ['all completed, evaluation and optimization on → COMPLETED', all, {}, 'succeeded', {}],
  ['all completed, optimization off → COMPLETED', evaluated, {}, 'succeeded', { optimization: 'skipped' }],
  ['all completed, evaluation off → COMPLETED', plain, {}, 'succeeded', skippedBoth],
  ['all completed, optimization without evaluation is skipped → COMPLETED', unevaluated, {}, 'succeeded', skippedBoth],
  ['nothing asked for in the input: evaluation is off → COMPLETED', {}, {}, 'succeeded', skippedBoth],
  ['all six failed → FAILED', all, every('failed'), 'failed', every('failed')],
  ['all failed, evaluation off → FAILED', plain, every('failed'), 'failed', { ...every('failed'), ...skippedBoth }],
  [
    'only brief completed → PARTIAL',
    all,
    { ...every('failed'), brief: 'succeeded' },
    'partial',
    { ...every('failed'), brief: 'succeeded' },
  ],
  [
    'classify finished with some errors → stage partial, job PARTIAL',
    all,
    { classify: 'partial' },
    'partial',
    { classify: 'partial' },
  ],
  [
    'evaluation failed, and optimization still runs → PARTIAL',
    all,
    { evaluation: 'failed' },
    'partial',
    { evaluation: 'failed' },
  ],
  [
    'evaluation off, ingest failed → PARTIAL',
    plain,
    { ingest: 'failed' },
    'partial',
    { ingest: 'failed', ...skippedBoth },
  ],
  ...names.map(
    name =>
      [
        `only ${name} failed → PARTIAL`,
        all,
        { [name]: 'failed' },
        'partial',
        { [name]: 'failed' },
      ] as (typeof paths)[number],
  ),
]

for (const [title, input, outcomes, job, stages] of paths) {
  test(`pipeline 003, flowchart: ${title}`, async t => {
    const { f, id } = await submitted(t, input)
    const ran = await work(f, names, name => outcomes[name] ?? 'succeeded')
    const ended = { ...every('succeeded'), ...stages }
    assert.deepEqual(await ends(f, id), { job, ...ended })
    assert.deepEqual(
      ran,
      names.filter(name => ended[name] !== 'skipped'),
    )
  })
}

for (const [index, name] of names.entries()) {
  const done = names.slice(0, index)
  const rest = names.slice(index)
  const stopped = {
    job: 'cancelled',
    ...every('succeeded'),
    ...Object.fromEntries(rest.map(each => [each, 'cancelled'])),
  }
  const from = index === 0 ? 'PENDING' : 'RUNNING'

  test(`pipeline 003, flowchart: ${from} → CANCELLED before ${name}, which never runs`, async t => {
    const { f, id } = await submitted(t, all)
    await work(f, done)
    await f.engine.cancelJob(id)
    assert.deepEqual(await ends(f, id), stopped)
    assert.deepEqual(await work(f, names), [])
  })

  for (const word of ['cancelled', 'succeeded'] as const) {
    test(`pipeline 003, cancellation: asked for during ${name}, which is told and ends as ${word} → CANCELLED`, async t => {
      const { f, id } = await submitted(t, all)
      await work(f, done)
      const [held] = await begin(f, name)
      await f.engine.cancelJob(id)
      assert.equal((await f.engine.job(id)).state, 'stopping')
      const { cancel } = await f.sync({ beats: [{ id: held!.id, epoch: held!.epoch }] })
      assert.deepEqual(
        cancel.map(notice => notice.id),
        [held!.id],
      )
      await say(f, [held!], word)
      assert.deepEqual(await ends(f, id), stopped)
      assert.equal((await f.engine.task(held!.id)).state, word)
      assert.deepEqual(await work(f, names), [])
      const { items } = await f.engine.jobEvents(id)
      assert.equal(items.filter(({ type }) => type === 'job.cancel_requested').length, 1)
    })
  }
}

test('pipeline 003, cancellation: asked for at the very moment a stage ends → CANCELLED, and nothing more runs', async t => {
  const f = await fresh(t)
  for (let round = 0; round < 10; round++) {
    const { id } = await f.engine.submit({ ...(parse(example) as JobSpec), input: all })
    const held = await begin(f, 'ingest')
    await Promise.all([f.engine.cancelJob(id), say(f, held, 'succeeded')])
    const { ingest, ...others } = await ends(f, id)
    assert.deepEqual(others, { job: 'cancelled', ...without(every('cancelled'), 'ingest') })
    assert.match(String(ingest), /succeeded|cancelled/)
    assert.deepEqual(await work(f, names), [])
  }
})

const terminal: [word: string, finish: (f: Fresh, id: string) => Promise<unknown>][] = [
  ['COMPLETED', f => work(f, names)],
  ['PARTIAL', f => work(f, names, name => (name === 'brief' ? 'failed' : 'succeeded'))],
  ['FAILED', f => work(f, names, () => 'failed')],
  ['CANCELLED', (f, id) => f.engine.cancelJob(id)],
]
for (const [word, finish] of terminal) {
  test(`pipeline 003, job: ${word} is terminal, so a cancel is refused`, async t => {
    const { f, id } = await submitted(t, plain)
    await finish(f, id)
    const before = await ends(f, id)
    await assert.rejects(f.engine.cancelJob(id), { code: 'MOVE_REFUSED' })
    assert.deepEqual(await ends(f, id), before)
  })
}

test('pipeline 003, job: RUNNING → FAILED, when the first stage failed and is said to matter', async t => {
  const f = await fresh(t)
  const { stages, ...job } = parse(example) as JobSpec
  const [first, ...others] = stages!
  const { id } = await f.engine.submit({ ...job, stages: [{ ...first!, onFailure: 'fail' }, ...others] })
  assert.deepEqual(await work(f, names, () => 'failed'), ['ingest'])
  assert.deepEqual(await ends(f, id), { job: 'failed', ...every('cancelled'), ingest: 'failed' })
})

test('pipeline 003, job: RUNNING → FAILED, when the orchestrator itself stumbles over a condition', async t => {
  const f = await fresh(t)
  const { stages, ...job } = parse(example) as JobSpec
  const strict = stages!.map(stage => ({ ...stage, onFailure: 'fail' as const }))
  const { id } = await f.engine.submit({ ...job, stages: strict, input: { enable_evaluation: 'perhaps' } })
  await work(f, names)
  const states = { job: 'failed', ...every('succeeded'), evaluation: 'failed', optimization: 'cancelled' }
  assert.deepEqual(await ends(f, id), states)
  assert.match((await stageOf(f, id, 'evaluation')).error!.message, /perhaps|bool/)
})

test('pipeline 003, stage: a stage that threw is failed, and its error can be read', async t => {
  const { f, id } = await submitted(t, plain)
  const [held] = await claim(f, ['ingest'])
  await say(f, [held!], { outcome: 'failed', error: { message: 'the feed is gone', permanent: true } })
  assert.equal((await stageOf(f, id, 'ingest')).state, 'failed')
  assert.equal((await f.engine.task(held!.id)).error!.message, 'the feed is gone')
})

test('pipeline 003, stale: a run that is older than two hours has timed out, whether or not a worker began it', async t => {
  const { f, id: begun } = await submitted(t, plain)
  await begin(f, 'ingest')
  const { id: idle } = await f.engine.submit({ ...(parse(example) as JobSpec), input: plain })
  await f.advance(7100)
  await jobDeadlines.run(f.engine.context)
  const states = async () => [(await f.engine.job(idle)).state, (await f.engine.job(begun)).state]
  assert.deepEqual(await states(), ['pending', 'running'])
  await f.advance(101)
  await jobDeadlines.run(f.engine.context)
  assert.deepEqual(await states(), ['expired', 'stopping'])
  await f.engine.cancelJob(begun, { mode: 'hard' })
  assert.deepEqual(await states(), ['expired', 'expired'])
})
