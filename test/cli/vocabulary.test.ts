/** `--vocabulary`: the same commands in the words of another system. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobView } from '../../src/protocol/jobs/jobs.ts'
import { defineTask } from '../../src/worker/index.ts'
import { cli } from '../harness/cli.ts'
import { served } from '../harness/served.ts'

const bounded = { timeout: 600_000 }

test(
  'what commands show is said in another system’s words: as text, as JSON, and where it has none as nothing',
  bounded,
  async t => {
    const { engine, server } = await served(t)
    const pawl = await cli(t, { PAWL_SERVER: server.url, COLUMNS: '200' })
    await engine.register(defineTask({ type: 'extract', retry: { attempts: 2, delaySeconds: 0 }, handler: () => null }))
    const { id, stages } = await engine.submit({
      name: 'invoices',
      stages: [
        { name: 'extract', task: 'extract' },
        { name: 'review', gate: { approvers: 2 } },
      ],
    })
    const [first] = await engine.claims({ worker: 'w', queues: ['extract'], start: true })
    await engine.fail(first!.id, first!.epoch, { error: { message: 'smudged' } })
    const [again] = await engine.claims({ worker: 'w', queues: ['extract'], start: true })
    const printed = async (vocabulary: string, ...words: string[]) => {
      const { code, out, err } = await pawl.run([...words, '--vocabulary', vocabulary])
      assert.equal(code, 0, `${words.join(' ')}: ${err}`)
      return out
    }
    const json = async (vocabulary: string, ...words: string[]): Promise<unknown> =>
      JSON.parse(await printed(vocabulary, ...words, '--json'))

    assert.match(await printed('jobnik', 'job', 'list'), / IN_PROGRESS +invoices/)
    const described = await printed('jobnik', 'job', 'describe', id)
    assert.match(described, /^invoices {2}IN_PROGRESS/)
    assert.match(described, /^extract +IN_PROGRESS/m)
    assert.match(described, /^review +WAITING/m)
    assert.match(described, /extract +IN_PROGRESS +w/)
    const { state, stages: shown } = (await json('pipeline', 'job', 'describe', id)) as JobView
    assert.deepEqual([state, ...shown.map(stage => stage.state)], ['running', 'running', null])

    assert.match(await printed('falconeri', 'task', 'list'), / running +extract/)
    assert.match(await printed('pipeline', 'task', 'list'), / – +extract/)
    assert.match(await printed('jsm', 'task', 'describe', again!.id), /^extract {2}running[\s\S]* queued +w/)
    assert.match(await printed('jsm', 'task', 'events', again!.id), /job_claimed/)
    assert.match(await printed('jsm', 'events', 'tail', '--job', id), /job_started by worker:w/)
    const types = (await json('jsm', 'events', 'tail', '--job', id)) as { type: string | null }[]
    assert.ok(
      types.some(({ type }) => type === 'job_queued') && types.every(({ type }) => type?.startsWith('task.') !== true),
    )

    await engine.succeed(again!.id, again!.epoch)
    assert.match(await printed('jobnik', 'stage', 'list'), /review +WAITING/)
    assert.match(await printed('jobnik', 'stage', 'approve', stages[1]!.id), /^review is WAITING \(1 of 2 approvals\)/)
    assert.equal(((await json('jobnik', 'job', 'pause', id)) as JobView).state, 'PAUSED')
    assert.match(await printed('jobnik', 'job', 'cancel', id), /^invoices \S+ is ABORTED\n/)
  },
)

test('commands that decide by a state speak only ours, and a system that nobody knows is refused', bounded, async t => {
  const pawl = await cli(t)
  const unknown = await pawl.run(['job', 'list', '--vocabulary', 'jobnic'])
  assert.equal(unknown.code, 2)
  assert.match(unknown.err, /--vocabulary must be one of marie, jobnik, .*Did you mean jobnik\?/)
  assert.match((await pawl.run(['job', 'wait', 'x', '--vocabulary', 'jobnik'])).err, /has no flag --vocabulary/)
  assert.match((await pawl.run(['stage', 'approve', '--help'])).out, /--vocabulary NAME/)
})
