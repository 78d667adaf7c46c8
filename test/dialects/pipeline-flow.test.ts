/** Every path through the flow chart of the async pipeline, through its own routes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../harness/eventually.ts'
import { rig, type StageName, stageNames } from './pipeline-rig.ts'

const bounded = { timeout: 600_000 }
const first = ['ingest', 'classify', 'neutralize', 'brief'] as const

/** The switches of a request, and the stages that then run. */
const ways: [title: string, config: Record<string, unknown>, ran: readonly StageName[]][] = [
  ['nothing asked for: evaluation and optimization are off', {}, first],
  ['evaluation on', { enable_evaluation: true }, [...first, 'evaluation']],
  ['evaluation and optimization on', { enable_evaluation: true, enable_auto_optimize: true }, stageNames],
  ['optimization without evaluation is skipped', { enable_auto_optimize: true }, first],
  ['switches that say no, as text too', { enable_evaluation: 'false', enable_auto_optimize: 0 }, first],
]

test('flow chart', bounded, async t => {
  const r = await rig(t)
  r.work()

  for (const [title, config, ran] of ways) {
    await t.test(`${title}: ${ran.length} stages run one after the other, the others are skipped`, async () => {
      const run = await r.run(config)
      const job = await run.ended()
      assert.deepEqual([job.status, run.ran()], ['completed', ran])
      const skipped = Object.entries(job.stage_progress).filter(([, { status }]) => status === 'skipped')
      assert.deepEqual(
        skipped.map(([name]) => name),
        stageNames.filter(name => !ran.includes(name)),
      )
    })
  }

  await t.test('the summary is made after brief, whatever became of it, and evaluation is given it', async () => {
    const run = await r.run({ enable_evaluation: true }, { brief: 'throw', evaluation: 'hold' })
    await run.held('evaluation')
    const { pipeline_run_summary_id } = await r.api.job(run.id)
    const { name, state, output } = await r.engine.stage(pipeline_run_summary_id!)
    const done = {
      state: 'succeeded',
      results: [{ status: 'completed', metrics: { total: 2, success: 2 }, errors: [] }],
    }
    const summary = { ingest: done, classify: done, neutralize: done, brief: { state: 'failed', results: [null] } }
    assert.deepEqual([name, state, output], ['summary', 'succeeded', summary])
    const { payload } = r.called.findLast(call => call.name === 'evaluation')!
    assert.deepEqual((payload as { summary: unknown }).summary, summary)
    run.letGo('evaluation')
    assert.equal((await run.ended()).status, 'partial')
  })

  await t.test('a run without evaluation has a summary too; one that was cancelled before brief has none', async () => {
    const whole = await (await r.run()).ended()
    assert.ok(whole.pipeline_run_summary_id !== null)
    const run = await r.run({}, { neutralize: 'hold' })
    await run.held('neutralize')
    await r.api.cancel(run.id)
    assert.equal((await run.ended()).pipeline_run_summary_id, null)
  })

  await t.test('evaluation that failed does not keep optimization from running', async () => {
    const run = await r.run({ enable_evaluation: true, enable_auto_optimize: true }, { evaluation: 'throw' })
    const job = await run.ended()
    assert.deepEqual([job.status, run.ran()], ['partial', stageNames])
    assert.equal(job.stage_progress.optimization?.status, 'completed')
  })

  for (const [index, name] of stageNames.entries()) {
    await t.test(
      `cancelled during ${name}: it has failed, no stage behind it starts, and what came before stays`,
      async () => {
        const run = await r.run({ enable_evaluation: true, enable_auto_optimize: true }, { [name]: 'hold' })
        await eventually('it is known to run', async () => (await r.api.job(run.id)).current_stage === name)
        assert.equal((await r.api.cancel(run.id)).body.cancelled, true)
        // A second cancel while the job stops gets the same answer.
        const again = (await r.api.cancel(run.id)).body
        assert.ok(again.cancelled || again.reason === 'Job is already cancelled')
        const job = await run.ended()
        const done = stageNames.slice(0, index)
        assert.deepEqual([job.status, job.current_stage, run.ran()], ['cancelled', name, [...done, name]])
        for (const each of done) assert.equal(job.stage_progress[each]?.status, 'completed')
        assert.equal(job.stage_progress[name]?.status, 'failed')
        for (const each of stageNames.slice(index + 1)) assert.equal(job.stage_progress[each]?.status, 'skipped')
      },
    )
  }
})
