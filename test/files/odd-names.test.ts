/** Names in a bucket or a folder that others fill: each works unchanged, or is rejected by name. */
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { test } from 'node:test'
import fc from 'fast-check'
import { openFiles } from '../../src/files/files.ts'
import { byBytes, joinUri } from '../../src/files/uri.ts'
import { folderUri, listed, putText, readText, withFolder, withSmallS3 } from './places.ts'

const odd = [' ', 'a b', ' a', 'a ', '%', '%41', '%2F', '#', '?', 'a?b#c', '+', 'a+b', '&amp;', '<x>', '"', "'", '\\']
  .concat(['\n', 'a\nb', '\r', '\t', '\u0001', '\u007f', '\u0085', 'é', 'e\u0301', '日本', '\u{1f600}', '\u{ffff}'])
  .concat([
    '\u2028',
    '~',
    '*',
    '[a]',
    '{a,b}',
    '...',
    '.hidden',
    '-',
    '--x',
    ':',
    'C:',
    '|',
    ';',
    '$HOME',
    '`id`',
    '=',
    '@',
    '!',
  ])
  .concat(['con', 'x'.repeat(255), 'é'.repeat(127), 'a/b c/%/#', '\ufeff', '\u200b', '__proto__', 'toString'])

test('odd names are kept, listed, promoted, read and removed as they are, in a bucket', () =>
  withSmallS3(async ({ files }) => {
    await keepsAll(files, 's3://bucket/odd/', odd)
  }))

test('odd names are kept, listed, promoted, read and removed as they are, in a folder', () =>
  withFolder(async folder => {
    await keepsAll(openFiles(), folderUri(folder), odd)
    assert.deepEqual(await readdir(folder), ['d'])
  }))

async function keepsAll(files: ReturnType<typeof openFiles>, folder: string, names: readonly string[]): Promise<void> {
  const [staging, target] = [joinUri(folder, '.pawl/t/1/'), joinUri(folder, 'd/')]
  for (const name of names) {
    const kept = await putText(files, staging, name)
    await files.promote(joinUri(staging, name), joinUri(target, name), kept)
  }
  const expected = names.toSorted(byBytes)
  assert.deepEqual(await listed(files, target, { deep: true }), expected)
  for (const [at, name] of expected.entries()) {
    assert.equal(await readText(files, joinUri(target, name)), name)
    assert.equal((await files.stat(joinUri(target, name)))?.size, Buffer.byteLength(name))
    assert.deepEqual(await listed(files, target, { deep: true, after: name }), expected.slice(at + 1))
  }
  await files.remove(names.flatMap(name => [joinUri(target, name), joinUri(staging, name)]))
  assert.deepEqual(await listed(files, target, { deep: true }).catch(() => []), [])
  assert.deepEqual(await listed(files, joinUri(folder, '.pawl/'), { deep: true }).catch(() => []), [])
}

test('any key comes out of a bucket as it went in', () =>
  withSmallS3(async ({ s3, files }) => {
    const bucket = s3.buckets.get('bucket')!
    const key = fc
      .string({ unit: 'binary', minLength: 1, maxLength: 8 })
      .map(text => text.replaceAll('/', '').replaceAll('\0', ''))
      .filter(text => !['', '.', '..'].includes(text))
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(key, { minLength: 1, maxLength: 5 }), async keys => {
        bucket.clear()
        for (const key of keys) bucket.set(Buffer.from(`in/${key}`).toString('latin1'), empty)
        assert.deepEqual(await listed(files, 's3://bucket/in/'), keys.toSorted(byBytes))
        await files.remove(keys.map(key => joinUri('s3://bucket/in/', key)))
        assert.equal(bucket.size, 0)
      }),
      { numRuns: 50 },
    )
  }))

const empty = { slices: [], size: 0, md5: 'd41d8', etag: '"d41d8"', metadata: {} }

test('keys that would lead out of a folder are refused by their name', () =>
  withSmallS3(async ({ s3, files }) => {
    const bucket = s3.buckets.get('bucket')!
    const bad: [string, RegExp][] = [
      ['in/../../etc/passwd', /"\.\.\/.*\. or \.\./],
      ['in/..', /"\.\.".*\. or \.\./],
      ['in/a/../b', /\. or \.\./],
      ['in/./b', /\. or \.\./],
      ['in//etc/passwd', /"\/.*begins with \//],
      ['in/a//b', /empty part/],
      ['in/nul\0', /NUL/],
      ['in/\xff\xfe', /\\xff\\\\xfe.*not UTF-8/],
    ]
    for (const [key, message] of bad) {
      bucket.clear()
      bucket.set(key, empty)
      await assert.rejects(listed(files, 's3://bucket/in/', { deep: true }), { code: 'NAME_REFUSED', message }, key)
    }
    bucket.clear()
    bucket.set('in/..', empty).set('in/../x', empty)
    await assert.rejects(listed(files, 's3://bucket/in/'), { code: 'NAME_REFUSED' })
    const long = `s3://bucket/${'long/'.repeat(205)}`
    await assert.rejects(putText(files, long, 'x'), { code: 'NAME_REFUSED', message: /1024 bytes/ })
  }))

test('empty objects that stand for folders are no files; one with bytes is refused', () =>
  withSmallS3(async ({ s3, files }) => {
    const bucket = s3.buckets.get('bucket')!
    for (const key of ['in/', 'in/a/', 'in/a/x', 'in/b/']) bucket.set(key, empty)
    assert.deepEqual(await listed(files, 's3://bucket/in/'), ['a/', 'b/'])
    assert.deepEqual(await listed(files, 's3://bucket/in/', { deep: true }), ['a/x'])
    bucket.set('in/c/', { ...empty, size: 3 })
    const refused = { code: 'NAME_REFUSED', message: /"c\/"/ }
    await assert.rejects(listed(files, 's3://bucket/in/', { deep: true }), refused)
  }))

test('a bucket is listed whole in pages of any size, folders once each', async () => {
  for (const pageSize of [1, 2, 3, 7]) {
    await withSmallS3(
      async ({ s3, files }) => {
        const keys = [
          'a',
          'b/1',
          'b/2',
          'b/3',
          'b/4',
          'c',
          'd/1',
          'd/e/1',
          'd/e/2',
          'e',
          'é',
          '.pawl/t/1/x',
          '.pawl/t/1/y',
        ]
        for (const key of keys) s3.buckets.get('bucket')!.set(Buffer.from(`in/${key}`).toString('latin1'), empty)
        const top = ['a', 'b/', 'c', 'd/', 'e', 'é']
        assert.deepEqual(await listed(files, 's3://bucket/in/'), top)
        for (const [at, path] of top.entries())
          assert.deepEqual(await listed(files, 's3://bucket/in/', { after: path }), top.slice(at + 1))
        const deep = keys.slice(0, -2).toSorted(byBytes)
        assert.deepEqual(await listed(files, 's3://bucket/in/', { deep: true }), deep)
        assert.deepEqual(await listed(files, 's3://bucket/in/', { deep: true, after: 'b/2' }), deep.slice(3))
      },
      { pageSize },
    )
  }
})
