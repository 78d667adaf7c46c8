import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../test/harness/eventually.ts'
import { fresh } from '../../../test/harness/fresh.ts'
import { statesOf, workOff } from '../../../test/harness/jobs.ts'
import type { JobSpec } from '../../spec/job-spec.ts'
import { advanceJob } from './advance-job.ts'

const stages: JobSpec['stages'] = [
  { name: 'a', task: 'work', payload: { n: 1 } },
  { name: 'b', task: 'work', queue: 'other', payloads: [1, null, 'x'] },
]
const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

const specs: Record<string, JobSpec> = {
  plain: { name: 'j', stages },
  'not started': { name: 'j', start: false, stages },
  'without stages': { name: 'j', open: true, stages: [] },
  detailed: {
    name: 'j',
    priority: 7,
    input: { deep: [1.5, 'x', null] },
    metadata: { owner: 'me' },
    correlationId: 'c',
    traceparent,
    deadlineSeconds: 60,
    staleSeconds: 30,
    softDeadlineSeconds: 10,
    hardDeadlineSeconds: 20,
    leaseSeconds: 5,
    stages: [
      { name: 'a', task: 'work', metadata: { k: [1] }, data: { d: 1 }, taskMetadata: { t: 1 }, parallelism: 2 },
      { name: 'b', task: 'work', expireInSeconds: 60, runAt: '2030-01-01T00:00:00Z', needs: [] },
      { name: 'c', task: 'work', open: 'untilDone', compensate: { task: 'undo' }, tolerate: { count: 1 } },
    ],
  },
  // The kernel needs the store for these.
  'with a condition': { name: 'j', stages: [{ name: 'a', task: 'work', when: 'true' }] },
  'with a gate': { name: 'j', stages: [{ name: 'a', task: 'work', gate: { timeoutSeconds: 60 } }] },
  'with an empty stage': { name: 'j', stages: [{ name: 'a', task: 'work', payloads: [] }, ...stages.slice(1)] },
}

for (const [what, spec] of Object.entries(specs)) {
  test(`a submit answers with the job as it is read afterwards: ${what}`, async t => {
    const { engine } = await fresh(t)
    const job = await engine.submit(spec)
    assert.deepEqual(job, await engine.job(job.id))
    const under = await engine.submit(spec, { idempotencyKey: 'k' })
    assert.deepEqual(under, await engine.job(under.id))
  })

  test(`a submitted job has nothing left to decide: ${what}`, async t => {
    const { engine } = await fresh(t)
    const { id } = await engine.submit(spec)
    const before = await engine.job(id)
    await advanceJob(engine.context, id, 'engine')
    assert.deepEqual(await engine.job(id), before)
  })

  test(`a job has the same rows, whether it is inserted at once or step by step: ${what}`, async t => {
    const { engine, sql } = await fresh(t)
    const small = await engine.submit({ ...spec, name: 'small' })
    // A job with more stages than one statement inserts. The additional ones are not compared.
    const extra = Array.from({ length: 25 }, (_, n) => ({ name: `extra ${n}`, task: 'extra', needs: [] }))
    const large = await engine.submit({ ...spec, name: 'large', stages: [...(spec.stages ?? []), ...extra] })
    const rowsOf = async (id: string) => {
      const [row] = await sql<{ rows: unknown }>`
        select json_build_object(
          'job', (select to_jsonb(j) - '{id,n,name,progress_at,history,deadline_at}'::text[]
                         || jsonb_build_object('plan', j.plan - 'name', 'deadline', round(extract(epoch from j.deadline_at - j.progress_at)))
                    from pawl.job j where j.id = ${id}::uuid),
          'stages', (select json_agg(to_jsonb(s) - '{id,job_id,lane_id,history,gate_until,ended_at}'::text[] order by ordinal)
                       from pawl.stage s where s.job_id = ${id}::uuid and name not like 'extra%'),
          'steps', (select json_agg(to_jsonb(h) - 'ts' order by s.ordinal, n)
                      from pawl.stage s cross join unnest(s.history) with ordinality as h (ts, epoch, state, type, actor, cause, payload, n)
                     where s.job_id = ${id}::uuid and name not like 'extra%'),
          'lanes', (select json_agg(to_jsonb(l) - '{id,job_id,stage_id,since,soft_at,hard_at}'::text[]
                                    || jsonb_build_object('soft', l.soft_at - l.since, 'hard', l.hard_at - l.since) order by ordinal)
                      from pawl.lane l join pawl.stage s on s.id = l.stage_id
                     where l.job_id = ${id}::uuid and s.name not like 'extra%'),
          'tasks', (select json_agg(to_jsonb(t) - '{id,job_id,stage_id,lane_id,run_at,expire_at,history}'::text[]
                                    || jsonb_build_object('waits', t.run_at > pawl.clock(), 'lives', t.expire_at - (t.history[1]).ts) order by ordinal, t.id)
                      from pawl.task t join pawl.stage s on s.id = t.stage_id
                     where t.job_id = ${id}::uuid and s.name not like 'extra%'),
          'due', (select count(*) from pawl.due d join pawl.lane l on l.id = d.lane_id
                   where l.job_id = ${id}::uuid and l.queue <> 'extra'),
          'expiry', (select count(*) from pawl.expiry e join pawl.task t on t.id = e.task_id where t.job_id = ${id}::uuid)
        ) as rows`
      return row!.rows
    }
    assert.deepEqual(await rowsOf(small.id), await rowsOf(large.id))
  })
}

test('every event of a small job is in the feed once, in order, although its rows were written at once', async t => {
  const run = await fresh(t)
  const { engine } = run
  const { id } = await engine.submit({
    name: 'j',
    stages: [
      { name: 'a', task: 'work' },
      { name: 'b', task: 'work' },
    ],
  })
  // Transactions of other tests hold back the feed for a moment.
  const readTo = (last: string) =>
    eventually(`the feed has ${last}`, async () => {
      const { items } = await engine.events({ jobId: id, limit: 500 })
      return items.at(-1)?.type === last && items
    })
  const began = await readTo('job.pending')
  assert.deepEqual(
    began.map(({ type }) => type),
    ['job.created', 'stage.created', 'stage.created', 'task.queued', 'task.blocked', 'stage.pending', 'job.pending'],
  )
  // Both stages start and end between two looks at the job.
  assert.equal(await workOff(run, 'work'), 1)
  assert.equal(await workOff(run, 'work'), 1)
  assert.equal(await statesOf(run, id), 'succeeded: a succeeded, b succeeded')
  const all = await readTo('job.succeeded')
  const names = all.map(({ entityId, seq }) => `${entityId} ${seq}`)
  assert.equal(new Set(names).size, names.length, 'no event twice')
  const { stages } = await engine.job(id)
  for (const { id: stageId, seq } of stages) {
    const own = all.filter(({ entityId }) => entityId === stageId)
    assert.deepEqual(
      own.map(({ type }) => type),
      ['stage.created', 'stage.pending', 'stage.running', 'stage.succeeded'],
    )
    assert.equal(seq, 4)
  }
})

test('a small job that is submitted in a transaction that rolls back never was', async t => {
  const run = await fresh(t)
  const undo = new Error('undo')
  await assert.rejects(
    run.engine.transaction(async tx => {
      await run.engine.submit({ name: 'j', stages }, { tx })
      throw undo
    }),
    undo,
  )
  assert.equal((await run.engine.jobs({})).items.length, 0)
  assert.equal(await workOff(run, 'work'), 0)
})
