/** Large objects: sent in parts, all or nothing, and never completely in memory. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventually } from '../harness/eventually.ts'
import { readText, withFolder, withSmallS3 } from './places.ts'
import type { Asked, Fault } from './small-s3.ts'

const mebibyte = 1 << 20
const uri = 's3://bucket/big'
const small = { partBytes: 5 * mebibyte, copyBytes: 5 * mebibyte }
const isPart = ({ method, query }: Asked) => method === 'PUT' && query.has('partNumber')

test('a large file goes up in parts and is copied in parts, with the same bytes and their SHA-256', () =>
  withFolder(folder =>
    withSmallS3(async ({ s3, files }) => {
      for (const size of [5, 10, 12].flatMap(count => [count * mebibyte - 1, count * mebibyte, count * mebibyte + 1])) {
        s3.asked.length = 0
        const bytes = randomBytes(size)
        await writeFile(join(folder, 'x'), bytes)
        const sha256 = createHash('sha256').update(bytes).digest('hex')
        const kept = await files.put(join(folder, 'x'), uri)
        assert.deepEqual(kept, { size, sha256 })
        const parts = s3.asked.filter(isPart).length
        assert.equal(parts, size < small.partBytes ? 0 : Math.ceil(size / small.partBytes))
        await files.promote(uri, `${uri}-promoted`, kept)
        assert.equal((await files.stat(`${uri}-promoted`))?.sha256, sha256)
        const text = await readText(files, `${uri}-promoted`)
        assert.equal(text, bytes.toString())
        assert.equal(s3.uploads.size, 0)
      }
    }, small),
  ))

test('a part that fails now and then is sent again; one that fails for good leaves nothing, and stops the others', () =>
  withFolder(folder =>
    withSmallS3(
      async ({ s3, files }) => {
        await writeFile(join(folder, 'x'), randomBytes(60 * mebibyte))
        let failures = 3
        s3.fault = asked => (isPart(asked) && failures-- > 0 ? { status: 503, code: 'SlowDown' } : undefined)
        const kept = await files.put(join(folder, 'x'), uri)
        assert.equal((await files.stat(uri))?.size, kept.size)
        await files.remove([uri])
        s3.asked.length = 0
        // With the usual waits, this would take minutes.
        const faults: Record<string, Fault> = { 2: { status: 403, code: 'AccessDenied' }, 3: 'silent' }
        s3.fault = asked => (isPart(asked) ? faults[asked.query.get('partNumber')!] : undefined)
        await assert.rejects(files.put(join(folder, 'x'), uri), { code: 'FILES_DENIED' })
        assert.equal(await files.stat(uri), undefined)
        assert.equal(s3.uploads.size, 0)
        assert.ok(s3.asked.filter(isPart).length <= 8, 'the others went on')
      },
      { ...small, tries: 6 },
    ),
  ))

test('an upload that cannot be completed at first keeps all of its parts, however many other requests have failed', () =>
  withFolder(folder =>
    withSmallS3(
      async ({ s3, files }) => {
        const bytes = randomBytes(12 * mebibyte)
        await writeFile(join(folder, 'x'), bytes)
        await writeFile(join(folder, 'small'), 'small')
        const failed = new Set<string>()
        const failsOnce = (request: string) => !failed.has(request) && failed.add(request)
        s3.fault = ({ method, key, query }) => {
          if (key !== 'big') return failsOnce(key) ? 'cut' : undefined
          // Holds the upload back until the other requests have used up the retries of its client.
          if (query.get('partNumber') === '2') return failsOnce('part 2') ? 'silent' : undefined
          return method === 'POST' && query.has('uploadId') && failsOnce('complete') ? 'cut' : undefined
        }
        const upload = files.put(join(folder, 'x'), uri)
        await eventually('the second part is being sent', () => failed.has('part 2'))
        const others = Array.from({ length: 120 }, (_, n) => `s3://bucket/f${n}`)
        await Promise.all(others.map(other => files.put(join(folder, 'small'), other)))
        const { size } = await upload
        assert.ok(failed.has('complete'))
        assert.equal((await files.stat(uri))?.size, size)
        assert.equal(await readText(files, uri), bytes.toString())
      },
      { ...small, silenceSeconds: 4 },
    ),
  ))

test('an upload whose last answer was lost is done, though the server no longer knows it', () =>
  withFolder(folder =>
    withSmallS3(async ({ s3, files }) => {
      await writeFile(join(folder, 'x'), randomBytes(11 * mebibyte))
      let lost = 0
      s3.fault = ({ method, query }) =>
        method === 'POST' && query.has('uploadId') && lost++ === 0 ? 'lose' : undefined
      const kept = await files.put(join(folder, 'x'), uri)
      assert.equal(lost, 2)
      assert.equal((await files.stat(uri))?.size, kept.size)
    }, small),
  ))

test('two promote one large file at once, and it is whole', () =>
  withFolder(folder =>
    withSmallS3(async ({ s3, files }) => {
      const bytes = randomBytes(16 * mebibyte)
      await writeFile(join(folder, 'x'), bytes)
      const kept = await files.put(join(folder, 'x'), uri)
      await Promise.all([1, 2, 3].map(() => files.promote(uri, `${uri}-promoted`, kept)))
      assert.equal((await files.stat(`${uri}-promoted`))?.sha256, kept.sha256)
      assert.ok(Buffer.concat(await (await files.open(`${uri}-promoted`)).toArray()).equals(bytes))
      await files.remove([uri])
      await files.promote(uri, `${uri}-promoted`, kept)
      await assert.rejects(files.promote(uri, `${uri}-other`, kept), { code: 'FILE_NOT_FOUND' })
      assert.equal(s3.uploads.size, 0)
    }, small),
  ))

test('what is in memory does not grow with the file', () =>
  withFolder(folder =>
    withSmallS3(
      async ({ files }) => {
        const rss: number[] = []
        for (const size of [100 * mebibyte, bigBytes]) {
          await writeFile(join(folder, 'x'), '')
          await truncate(join(folder, 'x'), size)
          const watch = setInterval(() => rss.push(process.memoryUsage.rss()), 20)
          const kept = await files.put(join(folder, 'x'), uri)
          let read = 0
          for await (const chunk of await files.open(uri)) read += chunk.length
          clearInterval(watch)
          assert.deepEqual([kept.size, read], [size, size])
          assert.equal(kept.sha256, shaOfZeros(size))
          assert.equal((await files.stat(uri))?.size, size)
        }
        const grown = Math.max(...rss) - rss[0]!
        assert.ok(grown < 250 * mebibyte, `it grew by ${Math.round(grown / mebibyte)} MiB`)
      },
      { partBytes: 5 * mebibyte, keepsBytes: false },
    ),
  ))

/** Three times the allowed growth of memory. With PAWL_TEST_BIG, larger than S3 accepts in one request. */
const bigBytes = (process.env.PAWL_TEST_BIG === undefined ? 750 : 5300) * mebibyte

function shaOfZeros(size: number): string {
  const hash = createHash('sha256')
  const zeros = Buffer.alloc(mebibyte)
  for (let left = size; left > 0; left -= mebibyte) hash.update(zeros.subarray(0, Math.min(left, mebibyte)))
  return hash.digest('hex')
}
