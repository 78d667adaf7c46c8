/** Runs whole jobs with workers written from Falconeri's document alone. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { ServerProgram } from '../faults/programs/server.ts'
import { needsServer } from '../harness/databases.ts'
import { eventually } from '../harness/eventually.ts'
import { type FalconeriRig, falconeriRig, speaking } from '../harness/falconeri.ts'
import { workAsPod } from '../harness/falconeri-worker.ts'
import { folder } from '../harness/files.ts'
import { freePort } from '../harness/free-port.ts'
import { fresh } from '../harness/fresh.ts'
import { startProgram } from '../harness/program.ts'

const bounded = { timeout: 600_000 }

/** Converts each text to upper case; `poison` fails. */
const cmd = [
  'sh',
  '-c',
  `for f in "$PFS"/texts/*; do
     echo "reading $(basename "$f")"
     if grep -q poison "$f"; then echo 'cannot read it' >&2; exit 3; fi
     tr a-z A-Z < "$f" > "$PFS/out/$(basename "$f")"
   done`,
]
const transform = { cmd, image: 'debian:12' }

const texts = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`text-${n}.txt`, `word ${n}\n`]))
const inCapitals = (files: Record<string, string>) =>
  Object.fromEntries(
    Object.entries(files)
      .map(([name, text]): [string, string] => [name, text.toUpperCase()])
      .toSorted(([one], [other]) => (one < other ? -1 : 1)),
  )

const podsOf = ({ server }: FalconeriRig, jobId: string, count: number) =>
  Array.from({ length: count }, (_, n) =>
    workAsPod({ root: `${server.url}/dialects/falconeri`, jobId, pod: `pod-${n}` }),
  )

test('several pods do a whole job over real files, each datum once', bounded, async t => {
  const f = await falconeriRig(t)
  const files = texts(12)
  await f.inbox.write(files)
  const job = await f.run({ transform })
  const done = (await Promise.all(podsOf(f, job.id, 3))).flat()
  assert.deepEqual([done.length, new Set(done).size], [12, 12])
  assert.equal((await f.job(job.id)).status, 'done')
  assert.deepEqual(await f.outbox.read(), inCapitals(files))
  const { items } = await f.engine.jobArtifacts(job.id)
  assert.deepEqual(new Set(items.map(({ state }) => state)), new Set(['stored']))
  assert.equal(items.length, 12)
})

test(
  'a datum that fails is tried as often as it may, the others are done, and a retry does the rest',
  bounded,
  async t => {
    const f = await falconeriRig(t)
    const files = texts(5)
    await f.inbox.write({ ...files, 'text-2.txt': 'poison' })
    const job = await f.run({ transform, datum_tries: 3 })
    const done = (await Promise.all(podsOf(f, job.id, 2))).flat()
    assert.equal(done.length, 4 + 3)
    const { job: ended, error_datums, datum_status_counts } = await f.describe(job.id)
    assert.equal(ended.status, 'error')
    assert.deepEqual(
      datum_status_counts.map(({ status, count }) => [status, count]),
      [
        ['done', 4],
        ['error', 1],
      ],
    )
    const [poor] = error_datums
    assert.deepEqual([poor!.attempted_run_count, poor!.maximum_allowed_run_count], [3, 3])
    assert.match(poor!.error_message!, /exit status: 3/)
    assert.equal(poor!.output, 'reading text-2.txt\ncannot read it\n')
    await f.inbox.write(files)
    const { job: again } = await f.post<{ job: { id: string } }>(`/jobs/${job.id}/retry`)
    assert.equal((await Promise.all(podsOf(f, again.id, 2))).flat().length, 1)
    assert.equal((await f.job(again.id)).status, 'done')
    assert.deepEqual(await f.outbox.read(), inCapitals(files))
  },
)

/** A server in a separate process that can be killed and restarted at the same address. */
async function killable(t: TestContext) {
  const f = await fresh(t)
  const ask: ServerProgram = { database: f.url!, schema: f.schema, port: await freePort() }
  const [inbox, outbox] = [await folder(t), await folder(t)]
  const start = () => startProgram(t, 'faults/programs/server.js', ask, line => line)
  const root = `http://127.0.0.1:${ask.port}/dialects/falconeri`
  return { ...f, ...speaking(root, inbox, outbox), root, inbox, outbox, start }
}

test('a server that is killed again and again in the middle of a job costs no datum and does none twice', {
  ...bounded,
  ...needsServer(),
}, async t => {
  const f = await killable(t)
  const files = texts(30)
  await f.inbox.write(files)
  let server = f.start()
  await server.printed('that it is there', () => true)
  const job = await f.run({ transform, datum_tries: 1 })
  // The server is killed before each kind of request.
  const fatal = ['reserve', 'report files', 'report the datum', 'register files']
  let asked = 0
  let kills = 0
  let restarting: Promise<unknown> = Promise.resolve()
  const onStep = async (what: string) => {
    asked += 1
    if (asked < 15 * (kills + 1) || what !== fatal[kills]) return
    kills += 1
    server.signal('SIGKILL')
    restarting = restarting
      .then(() => server.ended)
      .then(() => {
        server = f.start()
        return server.printed('that it is there again', () => true)
      })
  }
  const pods = ['pod-0', 'pod-1', 'pod-2', 'pod-3'].map(pod => workAsPod({ root: f.root, jobId: job.id, pod, onStep }))
  const done = (await Promise.all(pods)).flat()
  await restarting
  assert.equal(kills, fatal.length)
  assert.equal((await f.job(job.id)).status, 'done')
  assert.deepEqual([done.length, new Set(done).size], [30, 30])
  assert.deepEqual(await f.outbox.read(), inCapitals(files))
  const { items } = await f.engine.jobTasks(job.id, { limit: 1000 })
  assert.deepEqual(new Set(items.map(({ epoch, state }) => `${state} ${epoch}`)), new Set(['succeeded 1']))
  const ledger = (await f.engine.jobArtifacts(job.id, { limit: 1000 })).items
  assert.deepEqual([ledger.length, ledger.every(({ state }) => state === 'stored')], [30, true])
})

test('a job that is submitted to a server that dies at once has its datums when it is back', {
  ...bounded,
  ...needsServer(),
}, async t => {
  const f = await killable(t)
  await f.inbox.write(texts(3))
  const first = f.start()
  await first.printed('that it is there', () => true)
  const asked = f.run({ transform }).catch(() => undefined)
  const made = await eventually('the job is there', async () => (await f.engine.jobs()).items[0])
  first.signal('SIGKILL')
  await Promise.all([first.ended, asked])
  // After a minute, another server continues listing the inputs.
  await f.advance(61)
  const second = f.start()
  await second.printed('that it is there', () => true)
  assert.equal((await workAsPod({ root: f.root, jobId: made.id, pod: 'pod' })).length, 3)
  assert.equal((await f.job(made.id)).status, 'done')
})
