import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import { statesOf, workOff } from '../../../test/harness/jobs.ts'
import { served } from '../../../test/harness/served.ts'
import { connect } from '../../client/client.ts'
import { Problem } from '../../kernel/problem.ts'
import { pawl } from '../engine.ts'

const pipelines = {
  nightly: {
    name: 'night',
    priority: 5,
    input: { pages: 1 },
    stages: [{ name: 'print', task: 'print', forEach: '[input.pages]' }],
  },
  written: 'name: written\nstages: [{ name: a, task: a }]',
}

const refusalOf = async (asked: Promise<unknown>) => {
  const problem = await asked.then(
    () => assert.fail('it was granted'),
    error => error as Problem,
  )
  assert.ok(problem instanceof Problem, String(problem))
  return problem
}

test('a job submitted by the name of a pipeline is that of its spec, with what is said beside the name', async t => {
  const f = await fresh(t, { pipelines })
  const plain = await f.engine.submit({ pipeline: 'nightly' })
  assert.deepEqual([plain.name, plain.priority, plain.input], ['night', 5, { pages: 1 }])
  const named = await f.engine.submit({ pipeline: 'nightly', name: 'mine', input: { pages: 'two' }, priority: -1 })
  assert.deepEqual([named.name, named.priority, named.input], ['mine', -1, { pages: 'two' }])
  const text = await f.engine.submit('pipeline: written\nname: said as text')
  assert.deepEqual([text.name, text.stages.map(({ name }) => name)], ['said as text', ['a']])
  assert.equal(await workOff(f, 'print'), 2)
  assert.equal(await statesOf(f, plain.id), 'succeeded: print succeeded')
})

test('a pipeline that nobody named is refused with those there are, and with what was meant', async t => {
  const { engine } = await fresh(t, { pipelines })
  const { code, status, details } = await refusalOf(engine.submit({ pipeline: 'nightyl' }))
  assert.deepEqual([code, status], ['PIPELINE_UNKNOWN', 404])
  assert.deepEqual(details, { pipeline: 'nightyl', known: ['nightly', 'written'], didYouMean: 'nightly' })
  assert.equal((await refusalOf(engine.submit({ pipeline: 'toString' }))).code, 'PIPELINE_UNKNOWN')
  assert.equal((await engine.jobs({ total: true })).total, 0)
})

test('what a pipeline says for itself cannot be said beside its name, and what no job has neither', async t => {
  const { engine } = await fresh(t, { pipelines })
  for (const beside of [{ stages: [] }, { open: true }, { inptu: 1 }]) {
    const { code, details } = await refusalOf(engine.submit({ pipeline: 'nightly', ...beside } as never))
    assert.deepEqual([code, (details.issues as { at: string }[])[0]?.at], ['SPEC_INVALID', Object.keys(beside)[0]])
  }
})

test('a pipeline with a fault is told by its name when the engine opens, before anything is opened', async () => {
  for (const bad of [{ name: 'x', stages: [{ name: 'a' }] }, 'name: [', 7] as never[]) {
    const { code, details } = await refusalOf(pawl({ pipelines: { nightly: bad } }))
    assert.deepEqual([code, details.pipeline], ['SPEC_INVALID', 'nightly'])
  }
})

test('over HTTP a pipeline is submitted by its name, and a key that is for other queues is refused', async t => {
  const { client, engine, server } = await served(t, { engine: { pipelines } })
  assert.equal((await client.submit({ pipeline: 'nightly' })).name, 'night')
  const { secret } = await engine.createKey({ name: 'narrow', role: 'producer', queues: ['a'] })
  const narrow = connect({ server: server.url, key: secret, patienceSeconds: 0 })
  await narrow.submit({ pipeline: 'written' })
  const { code, details } = await refusalOf(narrow.submit({ pipeline: 'nightly' }))
  assert.deepEqual([code, details], ['KEY_REFUSED', { queues: ['print'], may: ['a'] }])
})
