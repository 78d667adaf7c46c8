/** The datums of an input plan, and that a run that continues after any of them gets exactly the rest. */
import assert from 'node:assert/strict'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { openFiles } from '../../src/files/files.ts'
import { checkInputs, datumsOf } from '../../src/files/inputs.ts'
import { byBytes } from '../../src/files/uri.ts'
import type { InputPlan, Position } from '../../src/kernel/datum.ts'
import { folderUri, withFolder, withSmallS3 } from './places.ts'
import { all, files, pathsFound, shown, treeOf } from './tree.ts'

const cross = (...of: InputPlan[]): InputPlan => ({ kind: 'cross', of })
const union = (...of: InputPlan[]): InputPlan => ({ kind: 'union', of })

test('each thing in a folder is a datum, with its address, size and version', async () => {
  const tree = treeOf(['b c', 'a/1', 'a/2'], 's3://bucket/in/')
  assert.deepEqual(await all(files('docs', '/*'), () => tree), [
    { position: 'a/', inputs: [{ name: 'docs', uri: 's3://bucket/in/a/', path: 'a/' }] },
    {
      position: 'b c',
      inputs: [{ name: 'docs', uri: 's3://bucket/in/b%20c', path: 'b c', size: 3, version: 'b c' }],
    },
  ])
  assert.deepEqual(await all(files('docs', '/'), () => tree), [
    { position: '', inputs: [{ name: 'docs', uri: 's3://bucket/in/', path: '' }] },
  ])
  assert.deepEqual(await all(files('docs', '/'), () => tree, ''), [])
})

test('a cross is every combination, a union one after the other, nested as one likes', async () => {
  const tree = treeOf(['1', '2'])
  const show = async (plan: InputPlan) => shown(await all(plan, () => tree))
  const [a, b, c] = [files('a', '/*'), files('b', '/*'), files('c', '/1')]
  assert.deepEqual(await show(cross(a, b)), ['a:1 b:1', 'a:1 b:2', 'a:2 b:1', 'a:2 b:2'])
  assert.deepEqual(await show(union(a, a)), ['a:1', 'a:2', 'a:1', 'a:2'])
  assert.deepEqual(await show(cross(union(a, c), b)), [
    'a:1 b:1',
    'a:1 b:2',
    'a:2 b:1',
    'a:2 b:2',
    'c:1 b:1',
    'c:1 b:2',
  ])
  assert.deepEqual(await show(union(cross(c, a), b)), ['c:1 a:1', 'c:1 a:2', 'b:1', 'b:2'])
  assert.deepEqual(await show(cross(a, files('b', '/none'), c)), [])
  assert.deepEqual(await show(cross(a)), ['a:1', 'a:2'])
})

const name = fc.constantFrom('a', 'b', 'b.', 'b-', 'é', '\u{e000}', '\u{1f600}')
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map(parts => parts.join('/'))
const paths = fc.uniqueArray(path, { maxLength: 12 })
const glob = fc.constantFrom('/', '/*', '/*/*', '/b/*', '/*/b', '/**', '/b*/**', '/{a,b}/*/b*', '/*/**/b')
const leaf = (name: string) => glob.map(glob => files(name, glob))
const plan: fc.Arbitrary<InputPlan> = fc.oneof(
  leaf('x'),
  fc.tuple(leaf('x'), leaf('y')).map(of => cross(...of)),
  fc.tuple(leaf('x'), leaf('y'), leaf('z')).map(of => cross(...of)),
  fc.tuple(leaf('x'), leaf('x')).map(of => union(...of)),
  fc.tuple(leaf('x'), leaf('y'), leaf('z')).map(([x, y, z]) => cross(union(x, y), cross(z))),
  fc.tuple(leaf('x'), leaf('y'), leaf('z')).map(([x, y, z]) => union(x, cross(y, z))),
)

test('going on behind any datum gives exactly the rest, whatever was added and removed meanwhile', async () => {
  await fc.assert(
    fc.asyncProperty(plan, paths, paths, async (plan, before, now) => {
      const tree = treeOf(before)
      const positions = (await all(plan, () => tree)).map(({ position }) => position)
      tree.paths = now
      const whole = await all(plan, () => tree)
      for (const position of positions) {
        const sent = JSON.parse(JSON.stringify(position)) as Position
        const rest = whole.filter(datum => inOrder(datum.position, position) > 0)
        assert.deepEqual(await all(plan, () => tree, sent), rest)
      }
    }),
    { numRuns: 300 },
  )
})

/** A second, independent implementation of the order of positions. */
function inOrder(one: Position, other: Position): number {
  if (typeof one === 'string') return byBytes(one, other as string)
  if ('branch' in one) {
    const { branch, at } = other as { branch: number; at: Position }
    return one.branch - branch || inOrder(one.at, at)
  }
  for (const [index, part] of (one as Position[]).entries()) {
    const order = inOrder(part, (other as Position[])[index]!)
    if (order !== 0) return order
  }
  return 0
}

test('the order is that of the paths, and no datum comes twice', async () => {
  await fc.assert(
    fc.asyncProperty(plan, paths, async (plan, paths) => {
      const positions = (await all(plan, () => treeOf(paths))).map(({ position }) => position)
      for (const [index, position] of positions.entries())
        assert.ok(index === 0 || inOrder(positions[index - 1]!, position) < 0)
    }),
  )
})

test('only folders that can match are looked into', async () => {
  const tree = treeOf(['a/x/1', 'b/x/1', 'b/y/2', 'c/x/1', 'd'])
  assert.deepEqual(await pathsFound('/{a,c}/*/1', tree), ['a/x/1', 'c/x/1'])
  assert.deepEqual(tree.asked, ['', 'a/', 'a/x/', 'c/', 'c/x/'])
  tree.asked.length = 0
  assert.deepEqual(await pathsFound('/b/y/*', tree), ['b/y/2'])
  assert.deepEqual(tree.asked, ['b/y/'])
})

test('100,000 datums are given one by one, however few are in memory', async () => {
  const count = 100_000
  const pageSize = 1000
  let pagesAhead = 0
  const lister = {
    base: 's3://tree/',
    async *list() {
      for (let at = 0; at < count; at += pageSize) {
        pagesAhead += 1
        yield Array.from({ length: pageSize }, (_, index) => ({ path: String(at + index).padStart(6, '0') }))
      }
    },
  }
  let seen = 0
  for await (const { position } of datumsOf(files('in', '/*'), () => lister)) {
    assert.equal(position, String(seen).padStart(6, '0'))
    seen += 1
    assert.ok(pagesAhead <= Math.ceil(seen / pageSize))
  }
  assert.equal(seen, count)
})

test('the inner side of a cross is listed once if it is small, and again each time if it is large', async () => {
  for (const [size, lists] of [[10_000, 1] as const, [10_001, 3] as const]) {
    const outer = treeOf(['1', '2', '3'])
    const inner = treeOf(Array.from({ length: size }, (_, at) => `f${at}`))
    const plan = cross(files('outer', '/*'), files('inner', '/*'))
    let seen = 0
    for await (const _ of datumsOf(plan, ({ name }) => (name === 'outer' ? outer : inner))) seen += 1
    assert.equal(seen, 3 * size)
    assert.equal(inner.asked.length, lists)
  }
})

test('a folder that vanishes is empty; a whole disk or bucket that vanishes is not the end of its files', async () => {
  const store = openFiles()
  await withFolder(async folder => {
    for (const name of ['a', 'b', 'c']) await mkdir(join(folder, 'in', name), { recursive: true })
    for (const name of ['a/1', 'b/1', 'c/1', 'file']) await writeFile(join(folder, 'in', name), '')
    const lister = { base: folderUri(join(folder, 'in')), list: store.list }
    const reading = datumsOf(files('in', '/*/*'), () => lister)
    assert.equal((await reading.next()).value?.position, 'a/1')
    await rm(join(folder, 'in/b'), { recursive: true })
    assert.equal((await reading.next()).value?.position, 'c/1')
    assert.deepEqual(await all(files('in', '/file/*'), () => lister), [])
    assert.deepEqual(await all(files('in', '/none/*'), () => lister), [])
    const again = datumsOf(files('in', '/*/*'), () => lister)
    await again.next()
    await rm(join(folder, 'in'), { recursive: true })
    await assert.rejects(again.next(), { code: 'FILE_NOT_FOUND' })
  })
  await withSmallS3(async ({ s3, files: store }) => {
    const lister = { base: 's3://bucket/in/', list: store.list }
    for (const key of ['in/a/1', 'in/b/1']) s3.buckets.get('bucket')!.set(key, blob)
    const reading = datumsOf(files('in', '/*/*'), () => lister)
    assert.equal((await reading.next()).value?.position, 'a/1')
    s3.buckets.clear()
    await assert.rejects(reading.next(), { code: 'FILE_NOT_FOUND', message: /NoSuchBucket/ })
  })
})

const blob = { slices: [], size: 0, md5: '', etag: '""', metadata: {} }

test('a name too long for a folder of a worker is refused before anything runs', async () => {
  const long = 'x'.repeat(256)
  await assert.rejects(pathsFound('/*', treeOf([long])), { code: 'NAME_REFUSED', message: /255 bytes/ })
})

test('inputs that make no sense are refused with the reason and the place', () => {
  const bad: [InputPlan, RegExp][] = [
    [cross(files('a', '/*'), files('a', '/')), /input".*two inputs of a cross have the same name \\"a\\"/],
    [cross(files('a', '/*'), union(files('b', '/'), cross(files('a', '/')))), /two inputs/],
    [union(files('b', '/'), cross(files('a', '/'), files('a', '/'))), /input\.union\[1\]/],
    [cross(), /needs at least one input/],
    [files('../x', '/*'), /the name/],
    [files('', '/*'), /the name/],
    [files('out', '/*'), /reserved for the outputs/],
    [files('a', '*'), /begin with \//],
    [files('a', '/a//b'), /empty part/],
    [files('a', '/a/'), /empty part/],
    [files('a', '/../b'), /\. or \.\./],
    [files('a', '/[a'), /not closed/],
    [files('a', '/[]'), /nothing between/],
    [files('a', '/{a,b'), /unbalanced/],
    [files('a', '/{a/b,c}'), /unbalanced/],
    [files('a', '/{1..9}'), /ranges/],
    [files('a', '/a\\'), /nothing follows/],
    [Array.from({ length: 30 }).reduce<InputPlan>(inner => union(inner), files('a', '/')), /nested/],
  ]
  for (const [plan, message] of bad) assert.throws(() => checkInputs(plan), { code: 'INPUTS_INVALID', message })
  const from = { uri: 's3://bucket' }
  assert.throws(() => checkInputs({ kind: 'files', name: 'a', glob: '/', from }), { code: 'URI_INVALID' })
  checkInputs(union(files('a', '/*'), files('a', '/**'), cross(files('a', '/'), files('b', '/'))))
  checkInputs({ kind: 'files', name: 'a', glob: '/', from: { stage: 'first' } })
})
