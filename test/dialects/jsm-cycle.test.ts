/** A client written from the document alone drives many jobs to their ends, while its server is killed under it. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { checkAnswersOf } from '../harness/checked-answers.ts'
import { needsServer } from '../harness/databases.ts'
import { eventually } from '../harness/eventually.ts'
import { freePort } from '../harness/free-port.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { startProgram } from '../harness/program.ts'
import { type Job, jsmClient, type State, transitionsIn } from './jsm-client.ts'
import { type End, patiently, work } from './jsm-worker.ts'

const bounded = { timeout: 600_000 }
const jobs = 90
const workers = 6

/**
 * The outcome of each job: every third fails once, some permanently, and some succeed only after an operator retries
 * them.
 */
interface Plan {
  readonly n: number
  readonly ends: State
  readonly failsFirst: boolean
  readonly wantsMending: boolean
}

const plans = Array.from({ length: jobs }, (_, n): Plan => {
  const ends = n % 10 === 7 ? 'failed' : n % 10 === 8 ? 'dead_lettered' : 'succeeded'
  return { n, ends, failsFirst: n % 3 === 0, wantsMending: n % 10 === 9 }
})

const backoff = { base_sec: 0.01, max_sec: 0.1 }
const broken = { error_class: 'TransientError', message: 'the line is down' }

function handlerWith(mended: ReadonlySet<string>) {
  return ({ id, payload, attempts }: Job): End => {
    const { n, ends, failsFirst, wantsMending } = payload as Plan
    if (wantsMending && !mended.has(id)) return broken
    if (failsFirst && attempts === 1) return broken
    if (ends === 'failed') return { error_class: 'PermanentError', message: 'no such address' }
    if (ends === 'dead_lettered') return { error_class: 'ValidationError', message: 'not a letter' }
    return { result: n * 2 }
  }
}

/** A server in a separate process that can be killed and restarted at the same address. */
async function mortalServer(t: TestContext, { url, schema }: Fresh) {
  const port = await freePort()
  const start = async () => {
    const program = startProgram<{ url: string }>(
      t,
      'faults/programs/server.js',
      { database: url!, schema, port },
      line => JSON.parse(line),
    )
    await program.printed('it serves', line => line.url !== undefined)
    return program
  }
  let running = await start()
  checkAnswersOf(t, `http://127.0.0.1:${port}`)
  return {
    url: `http://127.0.0.1:${port}`,
    async dieAndComeBack() {
      running.signal('SIGKILL')
      await running.ended
      running = await start()
    },
  }
}

test(`${jobs} jobs with retries, errors for good and dead letters that are mended come to their ends, though the server is killed three times`, {
  ...bounded,
  ...needsServer(),
}, async t => {
  const run = await fresh(t)
  const server = await mortalServer(t, run)
  const jsm = jsmClient(() => server.url)
  const mended = new Set<string>()
  const ids: string[] = []
  let isOver = false
  const endedNow = async () => {
    const { items } = await run.engine.tasks({ limit: 1000, state: ['succeeded', 'failed', 'dead_lettered'] })
    // A job that will be retried has not ended with its dead letter.
    return items.filter(({ state, payload }) => state === (payload as Plan).ends)
  }
  const producing = async () => {
    for (const payload of plans) {
      const ask = { type: 'mail', payload, idempotency_key: `job ${payload.n}`, max_attempts: 2, backoff }
      ids.push((await patiently(() => jsm.enqueue(ask))).id)
    }
  }
  const mending = async () => {
    while (!isOver) {
      const letters = await patiently(() => jsm.deadLetters('?reason_code=exhausted_retries&limit=1000'))
      for (const { job_id } of letters) {
        mended.add(job_id)
        await patiently(() => jsm.retry(job_id, { idempotency_key: `mend ${job_id}` }))
      }
      await eventually(
        'there is something to mend',
        async () => isOver || (await run.engine.deadLetters()).items.length > 0,
      )
    }
  }
  const killing = async () => {
    for (const share of [0.2, 0.5, 0.8]) {
      await eventually(`${share} of them have ended`, async () => (await endedNow()).length >= share * jobs)
      await server.dieAndComeBack()
    }
  }
  const ending = eventually('all have ended', async () => (await endedNow()).length === jobs).finally(() => {
    isOver = true
  })
  const crew = Array.from({ length: workers }, (_, n) => `worker-${n}`)
  const [worked] = await Promise.all([
    Promise.all(crew.map(name => work(jsm, name, ['mail'], handlerWith(mended), () => isOver))),
    producing(),
    mending(),
    killing(),
    ending,
  ])

  assert.equal(new Set(ids).size, jobs, 'each was queued once')
  assert.deepEqual(
    worked.flatMap(({ lost }) => lost),
    [],
    'nobody lost a lease',
  )
  const leases = worked.flatMap(one => one.leases)
  assert.equal(new Set(leases).size, leases.length, 'nothing ran twice under one lease')
  for (const [index, id] of ids.entries()) {
    const { ends, n, failsFirst, wantsMending } = plans[index]!
    const job = await jsm.job(id)
    assert.deepEqual([job.state, job.result], [ends, ends === 'succeeded' ? n * 2 : null])
    const attempts = (failsFirst ? 2 : 1) + (wantsMending ? 2 : 0)
    const once = ['queued → assigned', 'assigned → running']
    const moves = transitionsIn(await jsm.events(id))
    assert.equal(moves.filter(move => move === once[0]).length, attempts, `${id} was claimed as often as needed`)
    assert.equal(moves.length, 3 * attempts + 1 + (wantsMending ? 1 : 0))
  }
})
