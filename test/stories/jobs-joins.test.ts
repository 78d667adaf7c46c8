/** The needs of a stage: every join with every outcome of its needs, as in the design. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isMet, needsOf } from '../../src/kernel/advance.ts'
import type { Join } from '../../src/kernel/plan.ts'
import type { StageState } from '../../src/kernel/stage.ts'
import type { StageSpec } from '../../src/spec/job-spec.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { claim, say, stageOf, statesOf, workOff } from '../harness/jobs.ts'

const joins: readonly Join[] = ['all', 'any', 'done']
const open = ['created', 'waiting', 'pending', 'running', 'stopping'] as const
/** `failed?` is a failed stage with onFailure `continue`. */
const ended = ['succeeded', 'partial', 'skipped', 'failed', 'cancelled', 'failed?', 'cancelled?'] as const
const words = [...open, ...ended]

function needOf(word: string) {
  const state = word.replace('?', '') as StageState
  return { state, onFailure: word.endsWith('?') ? ('continue' as const) : ('fail' as const) }
}

const verdictOf = (join: Join, needsWritten: boolean, needs: readonly string[]) =>
  needsOf({ join, needsWritten }, needs.map(needOf))

test('a need is met when it ended succeeded, partial or skipped, or bad with onFailure: continue', () => {
  const met = words.filter(word => isMet(needOf(word)))
  assert.deepEqual(met, ['succeeded', 'partial', 'skipped', 'failed?', 'cancelled?'])
  assert.ok(isMet({ state: 'succeeded', onFailure: 'continue' }))
  assert.ok(!isMet({ state: 'running', onFailure: 'continue' }))
})

test('one need: each join with each outcome', () => {
  type Row = [word: string, all: string, any: string, done: string]
  const rows: Row[] = [
    ['created', 'wait', 'wait', 'wait'],
    ['stopping', 'wait', 'wait', 'wait'],
    ['succeeded', 'met', 'met', 'met'],
    ['partial', 'met', 'met', 'met'],
    ['skipped', 'skip', 'skip', 'met'],
    ['failed', 'wait', 'skip', 'met'],
    ['cancelled', 'wait', 'skip', 'met'],
    ['failed?', 'met', 'met', 'met'],
    ['cancelled?', 'met', 'met', 'met'],
  ]
  for (const [word, ...expected] of rows) {
    assert.deepEqual(
      joins.map(join => verdictOf(join, true, [word])),
      expected,
      word,
    )
  }
})

test('the mere order of the list never cascades: after a skipped stage the next one opens', () => {
  assert.equal(verdictOf('all', false, ['skipped']), 'met')
  assert.equal(verdictOf('done', false, ['skipped']), 'met')
})

test('a stage without needs opens at once', () => {
  for (const needsWritten of [true, false]) {
    assert.equal(verdictOf('all', needsWritten, []), 'met')
    assert.equal(verdictOf('done', needsWritten, []), 'met')
  }
})

/** The sentences of the design, word for word. */
function expected(join: Join, needsWritten: boolean, needs: readonly string[]): string {
  const every = (...some: string[]) => needs.every(need => some.includes(need))
  const some = (...some: string[]) => needs.some(need => some.includes(need))
  const allEnded = every(...ended)
  if (join === 'done') return allEnded ? 'met' : 'wait'
  if (needsWritten && every('skipped')) return 'skip'
  if (join === 'all') return every('succeeded', 'partial', 'skipped', 'failed?', 'cancelled?') ? 'met' : 'wait'
  if (some('succeeded', 'partial', 'failed?', 'cancelled?')) return 'met'
  return allEnded ? 'skip' : 'wait'
}

test('two and three needs: every join with every mixture, in every order', () => {
  const pairs = words.flatMap(one => words.map(two => [one, two]))
  const triples = pairs.flatMap(pair => words.map(three => [...pair, three]))
  for (const needs of [...pairs, ...triples]) {
    for (const join of joins) {
      for (const written of [true, false]) {
        assert.equal(verdictOf(join, written, needs), expected(join, written, needs), `${join} of ${needs}`)
      }
    }
  }
})

test('what has been decided is not changed by a need that ends later, except that waiting ends', () => {
  for (const one of words) {
    for (const join of joins) {
      const before = verdictOf(join, true, [one, 'running'])
      const after = ended.map(two => verdictOf(join, true, [one, two]))
      if (before !== 'wait') assert.deepEqual(new Set(after), new Set([before]), `${join} of ${one}`)
    }
  }
})

const outcomes = ['succeeded', 'partial', 'skipped', 'failed?', 'cancelled?'] as const

/** A stage that ends in this state and lets its job continue. */
function stageThatEnds(name: string, word: string): StageSpec {
  const spec = { name, task: 'work', payload: word, needs: [], onFailure: 'continue' } as const
  return word === 'skipped' ? { ...spec, when: 'false' } : spec
}

/** Ends every submitted task as its payload says. */
async function makeEnd(f: Fresh): Promise<void> {
  for (const task of await claim(f, ['work'], 1000)) {
    if (task.payload === 'cancelled?') {
      await f.engine.cancelStage((await f.engine.task(task.id)).stageId!, { mode: 'hard' })
    } else await say(f, [task], task.payload === 'failed?' ? 'failed' : (task.payload as 'partial'))
  }
}

for (const join of joins) {
  test(`through the engine, join: ${join} with every pair of outcomes`, { timeout: 600_000 }, async t => {
    const f = await fresh(t)
    const jobs: { id: string; pair: string[] }[] = []
    for (const pair of outcomes.flatMap(one => outcomes.map(two => [one, two]))) {
      const needs = pair.map((word, index) => stageThatEnds(`n${index}`, word))
      const { id } = await f.engine.submit({
        name: pair.join(),
        stages: [...needs, { name: 'last', task: 'last', needs: ['n0', 'n1'], join }],
      })
      jobs.push({ id, pair })
    }
    await makeEnd(f)
    for (const { id, pair } of jobs) {
      const words = { met: 'pending', skip: 'skipped', wait: 'created' } as Record<string, string>
      const { state } = await stageOf(f, id, 'last')
      assert.equal(state, words[expected(join, true, pair)], pair.join())
    }
  })
}

test('a skipped branch passes its skip on where needs are written, and is joined again by any', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({
    name: 'j',
    stages: [
      { name: 'a', task: 'a' },
      { name: 'yes', task: 'yes', needs: ['a'], when: 'stages.a.output == "yes"' },
      { name: 'no', task: 'no', needs: ['a'], when: 'stages.a.output == "no"' },
      { name: 'after-no', task: 'no', needs: ['no'] },
      { name: 'join', task: 'join', needs: ['yes', 'after-no'], join: 'any' },
      { name: 'clean', task: 'clean', needs: ['after-no'], join: 'done' },
    ],
  })
  await workOff(f, 'a', { outcome: 'succeeded', output: 'yes' })
  assert.equal(
    await statesOf(f, id),
    'running: a succeeded, yes pending, no skipped, after-no skipped, join created, clean pending',
  )
  for (const queue of ['yes', 'join', 'clean']) assert.equal(await workOff(f, queue), 1)
  assert.equal((await f.engine.job(id)).state, 'succeeded')
})

test('any opens as soon as one need is met, and does not wait for the others', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({
    name: 'j',
    stages: [
      { name: 'a', task: 'a' },
      { name: 'b', task: 'b', needs: [] },
      { name: 'first', task: 'first', needs: ['a', 'b'], join: 'any' },
    ],
  })
  await workOff(f, 'b')
  assert.equal(await statesOf(f, id), 'running: a pending, b succeeded, first pending')
  assert.equal(await workOff(f, 'first'), 1)
  assert.equal(await statesOf(f, id), 'running: a pending, b succeeded, first succeeded')
})

test('a stage that is skipped skips the tasks it was declared with', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({
    name: 'j',
    stages: [
      { name: 'a', task: 'a', payloads: [1, 2], when: 'input.go' },
      { name: 'b', task: 'b' },
    ],
    input: { go: false },
  })
  const { items } = await f.engine.tasks({ stageId: (await stageOf(f, id, 'a')).id })
  assert.deepEqual(
    items.map(({ state }) => state),
    ['skipped', 'skipped'],
  )
  assert.equal((await f.engine.taskEvents(items[0]!.id)).items.at(-1)!.cause, 'condition_false')
  assert.equal(await statesOf(f, id), 'pending: a skipped, b pending')
})
