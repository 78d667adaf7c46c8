/**
 * Runs a job with files again and again: the process that lists its inputs, ends its tasks, stores its files and sweeps
 * loses its first statement, then its second, until one run loses none; the same with answers and with file operations.
 * Afterwards others continue, and the end is always the same.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { findInputs, putInPlace, sweepUploads } from '../../src/babysitter/chores.ts'
import { continueJobs } from '../../src/babysitter/job-chores.ts'
import { type Engine, openEngine } from '../../src/engine/engine.ts'
import { Problem } from '../../src/kernel/problem.ts'
import type { ClaimedTask } from '../../src/protocol/tasks/sync.ts'
import { claimCommands, type Folder, folder, putOut } from '../harness/files.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { losingFiles } from './losing-files.ts'
import { type Loss, losing } from './losing-sql.ts'

const bounded = { timeout: 600_000 }
const mostSteps = 200

interface Scene {
  readonly f: Fresh
  readonly jobId: string
  readonly outbox: Folder
}

/** Two files become two tasks, whose four output files are the inputs of a second stage. */
async function scene(t: TestContext, f: Fresh): Promise<Scene> {
  const [inbox, outbox] = [await folder(t), await folder(t)]
  await inbox.write({ a: 'A', b: 'B' })
  const run = { command: ['true'] }
  const { id } = await f.engine.submit({
    name: 'loop',
    stages: [
      {
        name: 'first',
        run,
        inputs: { doc: { uri: inbox.uri } },
        outputs: outbox.uri,
        heartbeatSeconds: null,
        leaseSeconds: 3600,
      },
      {
        name: 'second',
        run,
        inputs: { all: { stage: 'first', glob: '/*' } },
        heartbeatSeconds: null,
        leaseSeconds: 3600,
      },
    ],
  })
  return { f, jobId: id, outbox }
}

const chores = [findInputs, putInPlace, sweepUploads, continueJobs()]

/** Does everything there is to do: first the failing process, as far as it gets, and later the sound one. */
async function tell(scene: Scene, weak: Engine, isDead: () => boolean): Promise<void> {
  const { f, jobId } = scene
  for (let round = 0; round < 12; round++) {
    for (const chore of chores) if (!isDead()) await survived(() => chore.run(weak.context))
    await work(f, isDead() ? f.engine : weak)
    for (const chore of chores) if (!isDead()) await survived(() => chore.run(weak.context))
    await f.advance(61)
    for (const chore of chores) await chore.run(f.engine.context)
    const { state } = await f.engine.job(jobId)
    if (state !== 'pending' && state !== 'running') return
  }
  assert.fail('the job does not end')
}

async function work(f: Fresh, weak: Engine): Promise<void> {
  for (const task of await claimCommands(f)) {
    const files = filesOf(task)
    if (task.payload.outputs !== null) {
      if (!(await survived(() => putOut({ ...f, engine: weak }, task, files)))) await putOut(f, task, files)
    }
    const settled = [{ id: task.id, epoch: task.epoch, outcome: 'succeeded' as const }]
    if (!(await survived(() => weak.sync({ worker: 'w', settled })))) await f.sync({ settled })
  }
}

function filesOf({ payload }: ClaimedTask): Record<string, string> {
  const { path } = (payload as { inputs: { path: string }[] }).inputs[0]!
  return { [`${path}.out`]: path, [`sub/${path}`]: '' }
}

/** False if something was lost. */
async function survived(act: () => Promise<unknown>): Promise<boolean> {
  try {
    await act()
    return true
  } catch (error) {
    if (error instanceof Problem && ['STORE_UNAVAILABLE', 'FILES_UNAVAILABLE'].includes(error.code)) return false
    throw error
  }
}

async function assertEnd({ f, jobId, outbox }: Scene, label: string): Promise<void> {
  const { state, stages } = await f.engine.job(jobId)
  assert.equal(state, 'succeeded', `${label}: ${JSON.stringify(stages.map(({ error }) => error))}`)
  assert.deepEqual(
    stages.map(({ progress }) => progress.total),
    [2, 3],
    label,
  )
  for (const seconds of [61, 61]) {
    await f.advance(seconds)
    await sweepUploads.run(f.engine.context)
  }
  const texts = { 'a.out': 'a', 'b.out': 'b', 'sub/a': '', 'sub/b': '' }
  assert.deepEqual(await outbox.read(), texts, `${label}: each file once, and nothing beside`)
  const { items } = await f.engine.jobArtifacts(jobId)
  assert.deepEqual(
    items.map(({ name, state }) => `${name} ${state}`).toSorted(),
    Object.keys(texts).map(name => `${name} stored`),
    label,
  )
  const [left] = await f.sql`select (select count(*) from pawl.listing) as listings,
    (select count(*) from pawl.artifact where staged_uri is not null) as staged`
  assert.deepEqual(left, { listings: 0, staged: 0 }, label)
  assert.deepEqual(await f.engine.brokenRules(), [], label)
}

for (const what of ['store', 'files'] as const) {
  for (const of of ['statement', 'answer'] as const) {
    test(
      `whatever ${of} of the ${what} is lost, each input is worked on once and each file is in its place`,
      bounded,
      async t => {
        const f = await fresh(t)
        for (let n = 1, isLost = true; isLost; n++) {
          assert.ok(n < mostSteps, 'it never gets through')
          isLost = await isLostWhenTold(t, f, what, { n, of })
        }
      },
    )
  }
}

async function isLostWhenTold(t: TestContext, f: Fresh, what: 'store' | 'files', loss: Loss): Promise<boolean> {
  const scenario = await scene(t, f)
  const line = losing(f.sql, what === 'store' ? loss : { ...loss, n: Number.POSITIVE_INFINITY })
  const weak = await openEngine({ migrate: false, schema: f.schema, store: { sql: line.sql, close: async () => {} } })
  const place = losingFiles(weak.context.files, what === 'files' ? loss : { ...loss, n: Number.POSITIVE_INFINITY })
  Object.assign(weak.context, { files: place.files })
  const isDead = () => (what === 'store' ? line : place).wasLost()
  await tell(scenario, weak, isDead)
  await assertEnd(scenario, `after losing ${loss.of} ${loss.n} of the ${what}`)
  await weak.close()
  await f.engine.deleteJob(scenario.jobId)
  return isDead()
}
