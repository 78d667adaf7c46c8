/** Obstacles to storing a file whose attempt has won. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { artifactOf, claimCommands, doFileChores, folder, putOut, succeed, upload } from '../harness/files.ts'
import { fresh } from '../harness/fresh.ts'

const run = { command: ['true'] }

test('a file whose place is a folder of another’s file ends its stage, which says why, instead of being tried for ever', async t => {
  const f = await fresh(t)
  const [inbox, outbox] = [await folder(t), await folder(t)]
  await inbox.write({ a: '', b: '' })
  const { id } = await f.engine.submit({
    name: 'clash',
    stages: [{ name: 's', run, inputs: { doc: { uri: inbox.uri } }, outputs: outbox.uri }],
  })
  await doFileChores(f)
  const [one, other] = await claimCommands(f)
  await putOut(f, one!, { x: 'a file' })
  await succeed(f, one!)
  await doFileChores(f)
  await putOut(f, other!, { 'x/y': 'below a file' })
  await succeed(f, other!)
  await doFileChores(f)
  const { state, stages } = await f.engine.job(id)
  assert.deepEqual([state, stages[0]!.cause], ['failed', 'output_lost'])
  const [lost] = (await f.engine.jobArtifacts(id, { state: 'error' })).items
  assert.equal(lost!.name, 'x/y')
  assert.match(lost!.error!, /x\/y|ENOTDIR|EEXIST/)
  await f.advance(120)
  await doFileChores(f)
  assert.deepEqual(await outbox.read(), { x: 'a file' })
})

test('a file that was given up and then made after all is not swept away under its attempt', async t => {
  const f = await fresh(t)
  const [inbox, outbox] = [await folder(t), await folder(t)]
  await inbox.write({ a: '' })
  const { id } = await f.engine.submit({
    name: 'second thoughts',
    stages: [
      {
        name: 's',
        run,
        inputs: { doc: { uri: inbox.uri } },
        outputs: outbox.uri,
        heartbeatSeconds: null,
        leaseSeconds: 3600,
      },
    ],
  })
  await doFileChores(f)
  const [task] = await claimCommands(f)
  const report = (artifacts: Parameters<typeof f.engine.reportArtifacts>[2]['artifacts']) =>
    f.engine.reportArtifacts(task!.id, task!.epoch, { artifacts })
  await report([artifactOf(task!, 'x', 'registered')])
  await report([{ ...artifactOf(task!, 'x', 'error'), error: 'the bucket was away' }])
  await report([artifactOf(task!, 'x', 'registered')])
  const kept = await upload(task!, { x: 'made' })
  await f.advance(61)
  await doFileChores(f)
  await report([{ ...artifactOf(task!, 'x', 'uploaded'), ...kept.x }])
  await f.advance(61)
  await doFileChores(f)
  await succeed(f, task!)
  await f.advance(61)
  await doFileChores(f)
  assert.equal((await f.engine.job(id)).state, 'succeeded')
  assert.deepEqual(await outbox.read(), { x: 'made' })
})

test('the same place spelled in two ways is one place: the second task is told who has it', async t => {
  const f = await fresh(t)
  const [inbox, outbox] = [await folder(t), await folder(t)]
  await inbox.write({ a: '', b: '' })
  await f.engine.submit({
    name: 'spelling',
    stages: [{ name: 's', run, inputs: { doc: { uri: inbox.uri } }, outputs: outbox.uri }],
  })
  await doFileChores(f)
  const [one, other] = await claimCommands(f)
  await putOut(f, one!, { 'a(1)': 'first' })
  const { uri, stagedUri, ...rest } = artifactOf(other!, 'a(1)', 'registered')
  const spelled = (text: string) => text.replace('a(1)', 'a%281%29')
  const again = { ...rest, uri: spelled(uri), stagedUri: spelled(stagedUri!) }
  const second = f.engine.reportArtifacts(other!.id, other!.epoch, { artifacts: [again] })
  await assert.rejects(second, { code: 'ARTIFACT_CONTESTED' })
})

test('a place that no store could have is refused before anything is sent there', async t => {
  const f = await fresh(t)
  const [inbox, outbox] = [await folder(t), await folder(t)]
  await inbox.write({ a: '' })
  await f.engine.submit({
    name: 'nowhere',
    stages: [{ name: 's', run, inputs: { doc: { uri: inbox.uri } }, outputs: outbox.uri }],
  })
  await doFileChores(f)
  const [task] = await claimCommands(f)
  for (const name of ['a%2Fb', 'a%00', 'a%ff', 'a%', 'a?b', 'a#b', '..%2f..%2fx', '%2epawl/x', '.paw%6c/x']) {
    const report = f.engine.reportArtifacts(task!.id, task!.epoch, {
      artifacts: [artifactOf(task!, name, 'registered')],
    })
    await assert.rejects(report, { code: /URI_INVALID|ARTIFACT_OUTSIDE/ }, name)
  }
})
