import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { byBytes, isFolder, joinUri, parentOf, parseUri, pathError, pathIn, uriOf } from './uri.ts'

const part = fc
  .oneof(
    fc.string({ unit: 'binary', minLength: 1 }),
    fc.constantFrom('a b', '%', '%41', '#?', '\n', 'é', '~', '...', '+'),
  )
  .map(text => text.replaceAll('/', '').replaceAll('\0', ''))
  .filter(text => text !== '' && text !== '.' && text !== '..')
const path = fc
  .tuple(fc.array(part, { minLength: 1, maxLength: 4 }), fc.constantFrom('', '/'))
  .map(([parts, end]) => parts.join('/') + end)
const place = fc.oneof(
  path.map(path => ({ scheme: 'file' as const, bucket: '', path })),
  path.map(path => ({ scheme: 's3' as const, bucket: 'my-bucket', path })),
)

test('any name has a URI, and the URI gives the same name back', () => {
  fc.assert(
    fc.property(place, place => {
      const uri = uriOf(place)
      assert.match(uri, /^(file|s3):\/\/[a-z-]*\/[A-Za-z0-9\-._~%/]+$/)
      assert.deepEqual(parseUri(uri), place)
      assert.equal(isFolder(uri), place.path.endsWith('/'))
    }),
  )
})

test('what is joined to a folder lies in it, under the same path', () => {
  fc.assert(
    fc.property(place, path, (place, path) => {
      const folder = uriOf({ ...place, path: place.path.replace(/\/?$/, '/') })
      const uri = joinUri(folder, path)
      assert.equal(pathIn(folder, uri), path)
      assert.ok(uri.startsWith(folder) && pathIn(uri.replace(/\/?$/, '/'), folder) === undefined)
      const parent = parentOf(uri)!
      assert.ok(isFolder(parent) && uri.startsWith(parent) && parent.startsWith(folder))
    }),
  )
  assert.equal(joinUri('s3://b1/x/', ''), 's3://b1/x/')
  assert.equal(parentOf('s3://b1/'), undefined)
  assert.equal(parentOf('s3://b1/a'), 's3://b1/')
  assert.equal(parentOf('file:///a/b/'), 'file:///a/')
  assert.equal(pathIn('s3://b1/x/', 's3://b2/x/y'), undefined)
})

test('a path never leads out of its folder: it is refused by its name', () => {
  const bad = ['..', 'a/../b', './a', 'a//b', '/a', 'a\0', '../', '//', '/', '\ud800', '.']
  for (const name of bad) {
    assert.throws(() => joinUri('s3://bucket/x/', name), { code: 'NAME_REFUSED' }, name)
    assert.notEqual(pathError(name), undefined)
  }
})

test('a URI that names no place is refused, and the reason says why', () => {
  const bad: [string, RegExp][] = [
    ['', /no scheme/],
    ['/tmp/x', /no scheme/],
    ['gs://bucket/x', /gs:\/\/ is not supported/],
    ['file://./x', /relative/],
    ['file://../x', /relative/],
    ['file://host/x', /other machines/],
    ['s3:///x', /no bucket/],
    ['s3://b/x', /not a valid bucket name/],
    ['s3://../x', /not a valid bucket name/],
    ['s3://bucket', /s3:\/\/bucket\/ for the whole bucket/],
    ['s3://bucket/a/../b', /\. or \.\./],
    ['s3://bucket/%2e%2E/b', /\. or \.\./],
    ['s3://bucket/a%2Fb', /%2F/],
    ['s3://bucket//b', /begins with \//],
    ['file:///a//b', /empty part/],
    ['file:///a%00', /NUL/],
    ['s3://bucket/a?b', /# or a \?/],
    ['s3://bucket/a#b', /# or a \?/],
    ['s3://bucket/100%', /UTF-8/],
    ['s3://bucket/%ff', /UTF-8/],
  ]
  for (const [uri, message] of bad) assert.throws(() => parseUri(uri), { code: 'URI_INVALID', message }, uri)
})

test('people may write spaces and letters as they are', () => {
  assert.deepEqual(parseUri('s3://bucket/à la carte/x'), { scheme: 's3', bucket: 'bucket', path: 'à la carte/x' })
  assert.equal(uriOf(parseUri('file://localhost/a b')), 'file:///a%20b')
})

test('names are in the order of their bytes in UTF-8', () => {
  const name = fc.string({ unit: fc.constantFrom('a', 'b', '/', 'é', '\u{d7ff}', '\u{e000}', '\u{ffff}', '\u{10000}') })
  fc.assert(
    fc.property(name, name, (one, other) => {
      assert.equal(Math.sign(byBytes(one, other)), Buffer.compare(Buffer.from(one), Buffer.from(other)))
    }),
  )
})
