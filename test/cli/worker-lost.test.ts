/** `pawl worker lost`: an operator declares a worker dead, and its tasks are retried. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cli } from '../harness/cli.ts'
import { falconeriRig } from '../harness/falconeri.ts'

const bounded = { timeout: 600_000 }

test(
  'the datum of a falconeri-worker that was killed goes to the next pod once it is declared lost',
  bounded,
  async t => {
    const f = await falconeriRig(t)
    const pawl = await cli(t)
    await f.inbox.write({ a: 'A' })
    const { id } = await f.run({ datum_tries: 2 })
    const { datum } = await f.pod('killed').take(id)
    assert.equal(await f.pod('next').reserve(id), null)

    const lost = ['worker', 'lost', 'killed', '--reason', 'OOM', '--server', f.server.url]
    const { code, out, err } = await pawl.run(lost)
    assert.deepEqual([code, out, err], [0, 'Worker node-1/killed is lost. 1 task was requeued.\n', ''])
    const again = (await f.pod('next').take(id)).datum
    assert.deepEqual([again.id, again.attempted_run_count], [datum.id, 2])
    assert.equal((await f.pod('killed').done(datum.id)).status, 403)

    await pawl.run(['worker', 'lost', 'next', '--server', f.server.url])
    assert.equal((await f.job(id)).status, 'error')
    const [bad] = (await f.describe(id)).error_datums
    assert.equal(bad!.error_message, 'The worker was declared lost.')
  },
)

test('a worker that holds nothing is told as that, and with --json the tasks are named', bounded, async t => {
  const f = await falconeriRig(t)
  const pawl = await cli(t)
  const lost = async (...words: string[]) => pawl.run(['worker', 'lost', 'nobody', '--server', f.server.url, ...words])
  assert.equal((await lost()).out, 'Worker nobody is lost. It held no tasks.\n')
  assert.deepEqual((await lost('--json')).json(), { worker: 'nobody', tasks: [] })
})
