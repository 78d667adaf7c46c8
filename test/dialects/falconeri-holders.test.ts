/** Only the pod that holds a datum may report on it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rescue } from '../../src/babysitter/rescue.ts'
import { openEngine } from '../../src/engine/engine.ts'
import { startServer } from '../../src/server/server.ts'
import { needsServer } from '../harness/databases.ts'
import { type Answer, type FalconeriRig, falconeriRig, type Pod, speaking } from '../harness/falconeri.ts'

const day = 86_400

/** All reports that a pod can make on a datum. */
function everything(
  { outbox }: FalconeriRig,
  pod: Pod,
  datumId: string,
  fileId: string,
): Record<string, () => Promise<Answer>> {
  return {
    'register other files': () => pod.register(datumId, [`${outbox.uri}zombie`]),
    'register the same files': () => pod.register(datumId, [`${outbox.uri}x`]),
    'register none': () => pod.register(datumId, []),
    'say that a file is done': () => pod.uploaded(datumId, [{ id: fileId, status: 'done' }]),
    'say that a file is in error': () => pod.uploaded(datumId, [{ id: fileId, status: 'error' }]),
    'say nothing of files': () => pod.uploaded(datumId, []),
    'say that it is done': () => pod.done(datumId, 'of the zombie'),
    'say that it is in error': () => pod.error(datumId, 'of the zombie'),
  }
}

test('a pod that was thought dead and comes back gets 403 for all that it says, and the ledger stays the winner’s', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: 'A' })
  const { id: jobId } = await f.run({ datum_tries: 3 })
  const [zombie, winner] = [f.pod('zombie'), f.pod('winner')]
  const { datum } = await zombie.take(jobId)
  const [first] = await zombie.files(datum.id, [`${f.outbox.uri}x`])
  await zombie.uploaded(datum.id, [{ id: first!.id, status: 'done' }])
  await f.advance(day + 1)
  await rescue({ beginsBlind: false }).run(f.engine.context)

  const seen = async () => ({
    task: await f.engine.task(datum.id),
    events: (await f.engine.taskEvents(datum.id)).items.length,
    ledger: (await f.engine.taskArtifacts(datum.id)).items,
    job: (await f.job(jobId)).status,
  })
  const isForbidden = async (moment: string) => {
    const before = await seen()
    for (const file of new Set([first!.id, before.ledger.at(-1)!.id])) {
      for (const [what, say] of Object.entries(everything(f, zombie, datum.id, file))) {
        const answer = await say()
        assert.deepEqual(
          [answer.status, answer.type],
          [403, 'text/plain; charset=utf-8'],
          `${what} ${moment}: ${answer.text}`,
        )
      }
    }
    assert.deepEqual(await seen(), before, `nothing changes ${moment}`)
  }

  await isForbidden('when nobody has it')
  const again = await winner.take(jobId)
  assert.deepEqual([again.datum.id, again.datum.attempted_run_count], [datum.id, 2])
  await isForbidden('when another has it')
  const [file] = await winner.files(datum.id, [`${f.outbox.uri}x`])
  assert.notEqual(file!.id, first!.id)
  await isForbidden('when another has registered the same file')
  await winner.uploaded(datum.id, [{ id: file!.id, status: 'done' }])
  await winner.done(datum.id, 'of the winner')
  await isForbidden('when another is done')

  const { ledger, task, job } = await seen()
  assert.deepEqual([task.output, job], ['of the winner', 'done'])
  const stored = ledger.filter(({ state }) => state === 'stored')
  assert.deepEqual(
    stored.map(({ id, epoch }) => [id, epoch]),
    [[file!.id, 2]],
  )
  assert.equal(await zombie.reserve(jobId), null)
})

test('a pod that never held a datum gets 403, and so does one that has given it up', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: 'A', b: 'B' })
  const { id: jobId } = await f.run({ datum_tries: 2 })
  const [holder, other] = [f.pod('holder'), f.pod('other')]
  const { datum } = await holder.take(jobId)
  await other.take(jobId)
  const [file] = await holder.files(datum.id, [`${f.outbox.uri}x`])
  for (const [what, say] of Object.entries(everything(f, other, datum.id, file!.id))) {
    assert.equal((await say()).status, 403, what)
  }
  await holder.uploaded(datum.id, [{ id: file!.id, status: 'done' }])
  await holder.error(datum.id)
  const { 'say that it is in error': again, ...rest } = everything(f, holder, datum.id, file!.id)
  for (const [what, say] of Object.entries(rest)) assert.equal((await say()).status, 403, what)
  assert.equal((await again!()).status, 200, 'the same again: its answer was lost')
  assert.equal((await f.engine.task(datum.id)).failures, 1)
})

test('what a pod says again is answered as before, and counts once', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: 'A' })
  const { id: jobId } = await f.run()
  const pod = f.pod('pod')
  const { datum } = await pod.take(jobId)
  const uris = ['x', 'y'].map(name => `${f.outbox.uri}${name}`)
  const files = await pod.files(datum.id, uris)
  assert.deepEqual(await pod.files(datum.id, uris.toReversed()), files)
  const done = files.map(({ id }) => ({ id, status: 'done' }))
  for (const _ of [1, 2]) assert.equal((await pod.uploaded(datum.id, done)).status, 204)
  const [first, second] = [await pod.done(datum.id, 'once'), await pod.done(datum.id, 'twice')]
  assert.deepEqual([first.status, second.status, second.text], [200, 200, first.text])
  assert.equal((await pod.error(datum.id)).status, 403, 'but not something else')
  assert.equal((await f.engine.task(datum.id)).output, 'once')
})

test('other files than were registered before are refused, and files of others too', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: 'A', b: 'B' })
  const { id: jobId } = await f.run()
  const [one, two] = [f.pod('pod-1'), f.pod('pod-2')]
  const [first, second] = [(await one.take(jobId)).datum, (await two.take(jobId)).datum]
  const [file] = await one.files(first.id, [`${f.outbox.uri}x`])
  for (const names of [[], ['y'], ['x', 'y']]) {
    const answer = await one.register(
      first.id,
      names.map(name => `${f.outbox.uri}${name}`),
    )
    assert.equal(answer.status, 403, answer.text)
  }
  assert.equal((await two.register(second.id, [`${f.outbox.uri}x`])).status, 409, 'it is another datum’s')
  assert.equal((await two.uploaded(second.id, [{ id: file!.id, status: 'done' }])).status, 403)
  assert.equal((await one.uploaded(first.id, [{ id: 'x', status: 'done' }])).status, 403)
  assert.equal((await one.register(first.id, ['file:///etc/passwd'])).status, 400)
  assert.equal((await two.register(second.id, [`${f.outbox.uri}../x`])).status, 400)
  assert.deepEqual((await f.engine.taskArtifacts(second.id)).items, [])
  const unfinished = await one.done(first.id)
  assert.deepEqual([unfinished.status, unfinished.type], [409, 'text/plain; charset=utf-8'])
  await one.uploaded(first.id, [{ id: file!.id, status: 'error' }])
  assert.equal((await one.uploaded(first.id, [{ id: file!.id, status: 'done' }])).status, 409, 'it is in error')
  assert.equal((await one.done(first.id)).status, 200)
})

test(
  'the same pod reserving again, also many times at once and of two servers, gets the datum that it holds',
  needsServer(),
  async t => {
    const f = await falconeriRig(t)
    await f.inbox.write(Object.fromEntries(Array.from({ length: 6 }, (_, n) => [`file-${n}`, ''])))
    const engine = await openEngine({ database: f.url!, schema: f.schema })
    const server = await startServer(engine, { port: 0, dialects: ['falconeri'] })
    t.after(async () => {
      await server.close()
      await engine.close()
    })
    const elsewhere = speaking(`${server.url}/dialects/falconeri`, f.inbox, f.outbox)
    const { id } = await f.run()
    const taken: string[] = []
    for (let left = 6; left > 0; left--) {
      const asked = [f, elsewhere, f, elsewhere, f].map(each => each.pod('pod').take(id))
      const got = await Promise.all(asked)
      assert.equal(new Set(got.map(({ datum }) => datum.id)).size, 1)
      const { datum, input_files } = got[0]!
      assert.deepEqual([datum.status, datum.attempted_run_count], ['running', 1])
      assert.deepEqual(got[1]!.input_files, input_files)
      taken.push(datum.id)
      await elsewhere.pod('pod').done(datum.id)
    }
    assert.equal(new Set(taken).size, 6)
    assert.deepEqual([await f.pod('pod').reserve(id), (await f.job(id)).status], [null, 'done'])
  },
)

test('a pod of one name in two jobs holds a datum in each', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: 'A', b: 'B' })
  const [one, two] = [await f.run(), await f.run()]
  const pod = f.pod('pod')
  const [first, second] = [await pod.take(one.id), await pod.take(two.id)]
  assert.deepEqual([first.datum.job_id, second.datum.job_id], [one.id, two.id])
  assert.equal((await pod.take(one.id)).datum.id, first.datum.id)
})
