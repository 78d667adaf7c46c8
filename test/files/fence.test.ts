/** `fileRoots`: files outside the roots stay out of reach, whatever links the roots contain. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { openFiles } from '../../src/files/files.ts'
import { ownFolder } from '../harness/command-rig.ts'
import { fresh } from '../harness/fresh.ts'
import { served } from '../harness/served.ts'

const outside = { code: 'FILES_OUTSIDE' }

/** A root, a folder next to it, and in the root a link to that folder and a link to a file in it. */
function place(t: TestContext) {
  const folder = ownFolder(t)
  const [root, other] = [join(folder, 'root'), join(folder, 'other')]
  for (const path of [root, other]) mkdirSync(path)
  writeFileSync(join(other, 'secret'), 'sesame')
  writeFileSync(join(root, 'plain'), 'plain')
  symlinkSync(other, join(root, 'away'))
  symlinkSync(join(other, 'secret'), join(root, 'file'))
  symlinkSync('plain', join(root, 'near'))
  const files = openFiles({ roots: [root] })
  t.after(() => files.close())
  return { folder, root, other, files, uri: (name: string) => `${pathToFileURL(root)}/${name}` }
}

async function names(pages: AsyncIterable<readonly { path: string }[]>): Promise<string[]> {
  const found: string[] = []
  for await (const page of pages) found.push(...page.map(({ path }) => path))
  return found
}

test('a link below a root that leads out is not read, looked at or listed', async t => {
  const { files, uri } = place(t)
  await assert.rejects(files.open(uri('file')), outside)
  await assert.rejects(files.open(uri('away/secret')), outside)
  await assert.rejects(files.stat(uri('file')), outside)
  await assert.rejects(files.stat(uri('away/secret')), outside)
  await assert.rejects(names(files.list(uri('away/'))), outside)
  await assert.rejects(names(files.list(uri('away/'), { deep: true })), outside)
})

test('a link below a root that leads out is not written or removed through', async t => {
  const { folder, other, files, uri } = place(t)
  const local = join(folder, 'local')
  writeFileSync(local, 'new')
  await assert.rejects(files.put(local, uri('away/new')), outside)
  await assert.rejects(files.put(local, uri('away/deep/er/new')), outside)
  await assert.rejects(files.promote(uri('plain'), uri('away/new'), { size: 5, sha256: '' }), outside)
  await assert.rejects(files.promote(uri('away/secret'), uri('taken'), { size: 6, sha256: '' }), outside)
  await assert.rejects(files.remove([uri('away/secret')]), outside)
  assert.deepEqual(readdirSync(other), ['secret'])
})

test('a staged file that is a link is not put in its place', async t => {
  const { root, files, uri } = place(t)
  await assert.rejects(files.promote(uri('file'), uri('taken'), { size: 6, sha256: '' }), { code: 'NAME_REFUSED' })
  assert.ok(!existsSync(join(root, 'taken')))
})

test('what lies below a root is used as ever, and a link that stays inside is followed', async t => {
  const { folder, files, uri } = place(t)
  const local = join(folder, 'local')
  writeFileSync(local, 'new')
  const kept = await files.put(local, uri('a/b/new'))
  await files.promote(uri('a/b/new'), uri('c/d/new'), kept)
  await files.promote(uri('a/b/gone'), uri('c/d/new'), kept)
  assert.equal(await text(await files.open(uri('c/d/new'))), 'new')
  assert.equal(await text(await files.open(uri('near'))), 'plain')
  assert.equal((await files.stat(uri('near')))?.size, 5)
  assert.deepEqual(await names(files.list(uri('a/'), { deep: true })), ['b/new'])
  await files.remove([uri('a/b/new'), uri('a/b/new')])
  assert.equal(await files.stat(uri('a/b/new')), undefined)
})

test('a root may itself be reached through a link', async t => {
  const { folder, root } = place(t)
  symlinkSync(root, join(folder, 'also'))
  const files = openFiles({ roots: [join(folder, 'also')] })
  assert.equal(await text(await files.open(`${pathToFileURL(join(folder, 'also'))}/plain`)), 'plain')
})

test('a link that leads elsewhere from one moment to the next never lets anything out', async t => {
  const { root, other, files, uri } = place(t)
  mkdirSync(join(root, 'mine'))
  writeFileSync(join(root, 'mine', 'secret'), 'mine')
  symlinkSync('mine', join(root, 'd'))
  let isSwapping = true
  const swap = async () => {
    for (let n = 0; isSwapping; n++) {
      symlinkSync(n % 2 === 0 ? other : 'mine', join(root, 'next'))
      renameSync(join(root, 'next'), join(root, 'd'))
      await new Promise(resolve => setImmediate(resolve))
    }
  }
  const swapping = swap()
  const local = join(root, 'plain')
  for (let n = 0; n < 300; n++) {
    const got = await files.open(uri('d/secret')).then(text, error => error.code)
    assert.ok(['mine', 'FILES_OUTSIDE'].includes(got), got)
    await files.put(local, uri(`d/new-${n}`)).catch(() => {})
  }
  isSwapping = false
  await swapping
  assert.deepEqual(readdirSync(other), ['secret'])
})

const commandOver = (input: string, outputs: string | null) => ({
  run: { command: ['true'] },
  inputs: [{ name: 'in', uri: input, path: input.endsWith('/') ? '' : 'x' }],
  outputs,
})

test('a command task that is queued by itself can name only files below the roots, and listed buckets', async t => {
  const { uri, other } = place(t)
  const root = new URL(uri(''))
  const { client, engine } = await served(t, { engine: { fileRoots: [root.pathname], s3Buckets: ['scans'] } })
  const away = `${pathToFileURL(other)}/`
  const good = [commandOver(uri('plain'), uri('out/')), commandOver('s3://scans/a', 's3://scans/out/')]
  const bad = [
    commandOver(`${away}secret`, null),
    commandOver(away, null),
    commandOver(uri('plain'), away),
    commandOver('s3://others/a', null),
    commandOver(uri('plain'), 's3://others/out/'),
  ]
  for (const payload of bad) await assert.rejects(client.enqueue('command', payload), { ...outside, status: 403 })
  for (const payload of good) assert.ok((await client.enqueue('command', payload)).id)

  const { stages } = await engine.submit({ name: 'j', stages: [{ name: 's', task: 't', open: true }] })
  await assert.rejects(engine.addTasks(stages[0]!.id, [{ type: 'command', payload: bad[0] }]), outside)
})

test('a job can name only buckets that are listed; where folders are limited and no bucket is listed, none', async t => {
  const { root } = place(t)
  const job = (uri: string) => ({
    name: 'j',
    stages: [{ name: 's', run: { command: ['true'] }, inputs: { in: { uri } }, outputs: uri }],
  })
  const listed = await fresh(t, { fileRoots: [root], s3Buckets: ['scans'] })
  assert.equal((await listed.engine.submit(job('s3://scans/a/'))).state, 'pending')
  await assert.rejects(listed.engine.submit(job('s3://scans-2/a/')), outside)
  const none = await fresh(t, { fileRoots: [root] })
  await assert.rejects(none.engine.submit(job('s3://scans/a/')), outside)
  const all = await fresh(t, { fileRoots: [root], s3Buckets: ['*'] })
  assert.equal((await all.engine.submit(job('s3://any/a/'))).state, 'pending')
})

test('files of a bucket that is not listed are not opened either', async t => {
  const files = openFiles({ buckets: ['scans'] })
  t.after(() => files.close())
  await assert.rejects(files.open('s3://others/a'), outside)
  await assert.rejects(files.stat('s3://others/a'), outside)
  await assert.rejects(files.remove(['s3://scans/a', 's3://others/a']), outside)
  await assert.rejects(names(files.list('s3://others/')), outside)
})

test('reading that is cancelled while a file is opened ends with the reason, and nothing else', async t => {
  const { files, uri } = place(t)
  const reason = new Error('cancelled')
  const unhandled: unknown[] = []
  const note = (error: unknown) => unhandled.push(error)
  process.on('uncaughtExceptionMonitor', note)
  t.after(() => process.off('uncaughtExceptionMonitor', note))
  for (let ticks = 0; ticks < 300; ticks++) {
    const stop = new AbortController()
    const reading = files.open(uri('plain'), stop.signal).then(text)
    let left = ticks % 30
    const tick = () => (left-- > 0 ? setImmediate(tick) : stop.abort(reason))
    tick()
    await reading.catch(error => assert.ok(error === reason || error.cause === reason, String(error)))
  }
  assert.deepEqual(unhandled, [])
})
