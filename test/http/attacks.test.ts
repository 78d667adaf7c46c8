/**
 * Requests that once kept a server busy for seconds or for good. Each is sent while `/healthz` is asked all the time. The
 * bound is processor time of one turn of the event loop: time on the clock says little on a busy machine, so it is only told.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { findInputs } from '../../src/babysitter/file-chores.ts'
import { takeListing } from '../../src/store/listings.ts'
import { eventually } from '../harness/eventually.ts'
import { folder } from '../harness/files.ts'
import { healthyWhile } from '../harness/healthy-while.ts'
import { type Served, served } from '../harness/served.ts'

const limits = { timeout: 120_000 }
const longestTurn = 1000

async function attack<Answer>(t: TestContext, { server }: Served, send: () => Promise<Answer>): Promise<Answer> {
  const { answer, longestTurnMs, checks, slowestCheckMs } = await healthyWhile(server, send)
  t.diagnostic(`longest turn ${longestTurnMs} ms; ${checks} health checks, the slowest ${slowestCheckMs} ms`)
  assert.ok(longestTurnMs < longestTurn, `a turn took ${longestTurnMs} ms`)
  return answer
}

test('a glob that backtracks for ever elsewhere blocks nobody, also when a process takes it up after another died', {
  ...limits,
}, async t => {
  const run = await served(t)
  const inbox = await folder(t)
  await inbox.write({ ['a'.repeat(200)]: '' })
  const stage = { name: 's', run: { command: ['true'] }, inputs: { doc: { uri: inbox.uri, glob: '/*a*a*a*a*a*a*b' } } }
  const job = await attack(t, run, async () => {
    const answer = await run.request('/v1/jobs', { method: 'POST', json: { name: 'globs', stages: [stage] } })
    // The process that takes it first dies over it.
    assert.ok((await takeListing(run.sql)) !== undefined)
    await run.advance(61)
    await findInputs.run(run.engine.context)
    return (await answer.json()) as { id: string }
  })
  const { state, progress } = await run.engine.job(job.id)
  assert.deepEqual([state, progress.total], ['succeeded', 0])
})

test(
  'a job with 60 costly conditions is accepted, and they are evaluated, while others are answered',
  limits,
  async t => {
    const run = await served(t)
    const input = Array.from({ length: 300 }, (_, index) => index)
    const when = 'input.all(x, input.all(y, x + y >= 0))'
    const stages = Array.from({ length: 60 }, (_, index) => ({ name: `s${index}`, task: 't', needs: [], when }))
    const answer = await attack(t, run, async () => {
      const answer = await run.request('/v1/jobs', { method: 'POST', json: { name: 'costly', input, stages } })
      const { id } = (await answer.clone().json()) as { id: string }
      const isOpen = await eventually('some are evaluated', async () => {
        const { stages } = await run.engine.job(id)
        return stages.filter(({ state }) => state !== 'created').length >= 3
      })
      assert.ok(isOpen)
      return answer
    })
    assert.equal(answer.status, 201)
  },
)

test('a job with 2,000 stages is accepted while others are answered', limits, async t => {
  const run = await served(t)
  const stages = Array.from({ length: 2000 }, (_, index) => ({ name: `s${index}`, task: 't', needs: [] }))
  const answer = await attack(t, run, () => run.request('/v1/jobs', { method: 'POST', json: { name: 'many', stages } }))
  assert.equal(answer.status, 201)
})

test('5,000 beats of one task are answered while others are', limits, async t => {
  const run = await served(t)
  await run.engine.enqueue('a', 1)
  const session = crypto.randomUUID()
  const { claimed } = await run.engine.sync({ worker: 'w', session, queues: ['a'], claim: 1 })
  const { id, epoch } = claimed[0]!
  const beats = Array.from({ length: 5000 }, () => ({ id, epoch }))
  const answer = await attack(t, run, () =>
    run.request('/v1/workers/w/sync', { method: 'POST', json: { session, beats } }),
  )
  assert.equal(answer.status, 200)
})

test('an option name of megabytes is refused in few words while others are answered', limits, async t => {
  const run = await served(t)
  const answer = await attack(t, run, () =>
    run.request('/v1/jobs', { method: 'POST', json: { ['x'.repeat(4_000_000)]: 1 } }),
  )
  const text = await answer.text()
  assert.deepEqual([answer.status, text.length < 10_000], [422, true])
})
