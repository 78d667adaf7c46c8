/** The contract of all file stores. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { byBytes, joinUri } from '../../src/files/uri.ts'
import { stagingOf } from '../../src/kernel/datum.ts'
import { entriesOf, listed, type Place, places, putText, readText, withFolder } from './places.ts'

const sha256 = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('hex')

for (const [name, start] of Object.entries(places)) {
  describe(name, () => {
    let place: Place
    before(async () => {
      place = await start()
    })
    after(() => place.close())

    test('what is put is what is read, of any size, and its size and SHA-256 are told', async () => {
      const { files } = place
      const folder = await place.fresh()
      await withFolder(async local => {
        for (const size of [0, 1, 1 << 20, (1 << 20) + 1, (16 << 20) + 7]) {
          const bytes = Buffer.alloc(size, `${size}-`)
          await writeFile(join(local, 'x'), bytes)
          const uri = joinUri(folder, `${size}.bin`)
          assert.deepEqual(await files.put(join(local, 'x'), uri), { size, sha256: sha256(bytes) })
          assert.equal(sha256(await readText(files, uri)), sha256(bytes))
          assert.equal((await files.stat(uri))?.size, size)
        }
      })
    })

    test('putting a file over another replaces it, and its version differs', async () => {
      const { files } = place
      const folder = await place.fresh()
      await putText(files, folder, 'a', 'one')
      const before = await files.stat(joinUri(folder, 'a'))
      await putText(files, folder, 'a', 'two')
      const [entry] = await entriesOf(files, folder)
      assert.notEqual(entry?.version, before?.version)
      assert.equal(entry?.version, (await files.stat(joinUri(folder, 'a')))?.version)
      assert.equal(await readText(files, joinUri(folder, 'a')), 'two')
    })

    test('a folder is listed in the order of its bytes, folders among files', async () => {
      const { files } = place
      const folder = await place.fresh()
      const paths = ['b/2', 'a.txt', 'b/1/x', 'a/z', 'b.d/y', 'b-c', 'é', 'Z', '\u{ffee}', '\u{1f600}']
      for (const path of paths) await putText(files, folder, path)
      const top = ['Z', 'a.txt', 'a/', 'b-c', 'b.d/', 'b/', 'é', '\u{ffee}', '\u{1f600}']
      assert.deepEqual(await listed(files, folder), top)
      assert.deepEqual(await listed(files, folder, { deep: true }), paths.toSorted(byBytes))
      assert.deepEqual(await listed(files, joinUri(folder, 'b/')), ['1/', '2'])
      assert.deepEqual(await entriesOf(files, joinUri(folder, 'b/1/')), [
        { path: 'x', size: 5, version: (await files.stat(joinUri(folder, 'b/1/x')))?.version },
      ])
    })

    test('a listing goes on behind any path, there or not', async () => {
      const { files } = place
      const folder = await place.fresh()
      for (const path of ['a', 'b/1', 'b/2', 'c', 'd/1']) await putText(files, folder, path)
      const behind = (path: string, deep: boolean) => listed(files, folder, { after: path, deep })
      for (const deep of [false, true]) {
        const all = await listed(files, folder, { deep })
        for (const [at, path] of all.entries()) assert.deepEqual(await behind(path, deep), all.slice(at + 1), path)
        assert.deepEqual(await behind('c-gone', deep), all.slice(-1))
        assert.deepEqual(await behind('z', deep), [])
      }
      assert.deepEqual(await behind('b/1', false), ['c', 'd/'])
      assert.deepEqual(await behind('b/', true), ['b/1', 'b/2', 'c', 'd/1'])
      assert.deepEqual(await behind('b/1-gone', true), ['b/2', 'c', 'd/1'])
    })

    test('uploads of attempts that have not won are not listed, unless they are asked for', async () => {
      const { files } = place
      const folder = await place.fresh()
      for (const path of ['x', '.pawl/t1/1/y', 'sub/.pawl/t2/1/z', 'sub/w']) await putText(files, folder, path)
      assert.deepEqual(await listed(files, folder), ['sub/', 'x'])
      assert.deepEqual(await listed(files, folder, { deep: true }), ['sub/w', 'x'])
      assert.deepEqual(await listed(files, joinUri(folder, '.pawl/'), { deep: true }), ['t1/1/y'])
      assert.deepEqual(await listed(files, stagingOf(folder, 't1', 1)), ['y'])
    })

    test('a staged file is promoted once or many times, by one or by two at once, over whatever is there', async () => {
      const { files } = place
      const folder = await place.fresh()
      const [staged, target] = [joinUri(stagingOf(folder, 't', 1), 'd/x'), joinUri(folder, 'd/x')]
      await putText(files, folder, 'd/x', 'of an earlier job')
      const kept = await putText(files, stagingOf(folder, 't', 1), 'd/x', 'the winner’s')
      await files.promote(staged, target, kept)
      assert.equal(await readText(files, target), 'the winner’s')
      await Promise.all(Array.from({ length: 8 }, () => files.promote(staged, target, kept)))
      assert.equal(await readText(files, target), 'the winner’s')
      assert.equal(await readText(files, staged), 'the winner’s')
      assert.deepEqual(await listed(files, stagingOf(folder, 't', 1), { deep: true }), ['d/x'])
      assert.deepEqual(await listed(files, folder, { deep: true }), ['d/x'])
    })

    test('promoting again is as good as done when the staged file is gone; if it never was, it is not found', async () => {
      const { files } = place
      const folder = await place.fresh()
      const staging = stagingOf(folder, 't', 1)
      const kept = await putText(files, staging, 'x', 'bytes')
      await files.promote(joinUri(staging, 'x'), joinUri(folder, 'x'), kept)
      await files.remove([joinUri(staging, 'x')])
      await files.promote(joinUri(staging, 'x'), joinUri(folder, 'x'), kept)
      const lost = { size: 5, sha256: sha256('other') }
      for (const [path, what] of [['y', kept] as const, ['x', lost] as const]) {
        const promoted = files.promote(joinUri(staging, 'x'), joinUri(folder, path), what)
        await assert.rejects(promoted, { code: 'FILE_NOT_FOUND' })
      }
      assert.deepEqual(await listed(files, folder), ['x'])
    })

    test('what is removed is gone, and removing it again is as good', async () => {
      const { files } = place
      const folder = await place.fresh()
      for (const path of ['a', 'b', 'c/d', '.pawl/t/1/x']) await putText(files, folder, path)
      const uris = ['a', 'c/d', 'never', 'b/under-a-file', '.pawl/t/1/x'].map(path => joinUri(folder, path))
      await files.remove(uris)
      await files.remove(uris)
      await files.remove([])
      assert.deepEqual(await listed(files, folder, { deep: true }), ['b'])
      assert.equal(await files.stat(joinUri(folder, 'a')), undefined)
    })

    test('what is not there is not found, by its name', async () => {
      const { files } = place
      const uri = joinUri(await place.fresh(), 'not there')
      const notFound = { code: 'FILE_NOT_FOUND', message: /not(%20| )there/ }
      await assert.rejects(files.open(uri), notFound)
      assert.equal(await files.stat(uri), undefined)
      await assert.rejects(files.put('/nowhere/not there', uri), notFound)
      assert.equal(await files.stat(uri), undefined)
    })

    test('an upload that is called off leaves nothing, and a reading that is called off ends', async () => {
      const { files } = place
      const folder = await place.fresh()
      await withFolder(async local => {
        await writeFile(join(local, 'x'), Buffer.alloc(40 << 20, 'x'))
        const [uri, reason] = [joinUri(folder, 'x'), new Error('called off')]
        await assert.rejects(files.put(join(local, 'x'), uri, AbortSignal.abort(reason)), reason)
        assert.deepEqual(await listed(files, folder), [])
        await files.put(join(local, 'x'), uri)
        await assert.rejects(files.open(uri, AbortSignal.abort(reason)), reason)
        const stop = new AbortController()
        const reading = async () => {
          for await (const _chunk of await files.open(uri, stop.signal)) stop.abort(reason)
        }
        await assert.rejects(reading, error => error === reason || (error as Error).cause === reason)
      })
    })

    test('a file is not taken for a folder, nor a folder for a file', async () => {
      const { files } = place
      const folder = await place.fresh()
      const invalid = { code: 'URI_INVALID' }
      await assert.rejects(listed(files, folder.slice(0, -1)), invalid)
      await assert.rejects(files.open(folder), invalid)
      await assert.rejects(files.stat(folder), invalid)
      await assert.rejects(files.put('/dev/null', folder), invalid)
      await assert.rejects(files.remove([folder]), invalid)
    })

    test('a pipe or a device is not put', async () => {
      const { files } = place
      await assert.rejects(files.put('/dev/zero', joinUri(await place.fresh(), 'x')), { code: 'NAME_REFUSED' })
    })

    test('more names than fit on a page are all listed, once and in order', async () => {
      const { files } = place
      const folder = await place.fresh()
      // s3rver itself fails at its second page.
      const names = Array.from({ length: name === 's3rver' ? 30 : 1203 }, (_, at) => `f${at}`)
      for (let at = 0; at < names.length; at += 50)
        await Promise.all(names.slice(at, at + 50).map(path => putText(files, folder, path)))
      assert.deepEqual(await listed(files, folder), names.toSorted(byBytes))
      assert.deepEqual(
        await listed(files, folder, { deep: true, after: 'f5' }),
        names.toSorted(byBytes).filter(n => n > 'f5'),
      )
    })
  })
}
