import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { pathOf, readFrame, usersFrame } from '../kernel/stack.ts'
import { mapStack } from './source-maps.ts'

const source = `interface Rate {
  readonly percent: number
}

type Unused = string

export function run(rate: Rate): never {
  throw new Error(\`no rate of \${rate.percent}\`)
}
`

const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')

/** Compiles the source as a user does. Node must not apply the map itself, as the test runner lets it. */
async function compiled(t: TestContext, options: readonly string[]) {
  const folder = await mkdtemp(join(tmpdir(), 'pawl-maps-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  await mkdir(join(folder, 'src'))
  await writeFile(join(folder, 'package.json'), '{"type": "module"}')
  await writeFile(join(folder, 'src/rates.ts'), source)
  const args = ['--outDir', 'dist', '--rootDir', 'src', '--module', 'nodenext', '--target', 'es2022', ...options]
  await promisify(execFile)(process.execPath, [tsc, ...args, 'src/rates.ts'], { cwd: folder })
  const wereEnabled = (process as { sourceMapsEnabled?: boolean }).sourceMapsEnabled === true
  process.setSourceMapsEnabled(false)
  t.after(() => process.setSourceMapsEnabled(wereEnabled))
  const { run } = await import(pathToFileURL(join(folder, 'dist/rates.js')).href)
  let stack = ''
  try {
    run({ percent: 3 })
  } catch (error) {
    stack = (error as Error).stack!
  }
  return { folder, stack }
}

for (const [kind, options] of [
  ['in a file of its own', ['--sourceMap']],
  ['in the compiled file', ['--inlineSourceMap', '--inlineSources']],
  ['with a root for the sources', ['--sourceMap', '--sourceRoot', '../src']],
] as const) {
  test(`an error in compiled code names the line of its source, by a source map ${kind}`, async t => {
    const { folder, stack } = await compiled(t, options)
    assert.match(stack, /dist\/rates\.js:2:/)
    const mapped = mapStack(stack)
    const { file, line } = usersFrame(mapped, () => false)!
    assert.deepEqual([file, line], [join(folder, 'src/rates.ts'), 8])
    assert.match(mapped, /^Error: no rate of 3\n {4}at run \(/)
  })
}

test('without a usable source map a stack stays as it is', async t => {
  const { folder, stack } = await compiled(t, [])
  assert.equal(mapStack(stack), stack)
  const odd = [
    `Error: x\n    at a (${folder}/gone.js:1:1)\n    at b (/dev/zero:1:1)\n    at c (${folder}:1:1)`,
    `Error: x\n    at a (${folder}/broken.js:1:1)`,
    `Error: x\n${'    at a (/'.repeat(10_000)}:1:1)`,
  ]
  await writeFile(join(folder, 'broken.js'), 'throw 1\n//# sourceMappingURL=data:application/json;base64,e30h\n')
  for (const one of odd) assert.equal(mapStack(one), one)
})

/** A folder for compiled files. Node must not apply their maps itself. */
async function emptyFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'pawl-maps-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const wereEnabled = (process as { sourceMapsEnabled?: boolean }).sourceMapsEnabled === true
  process.setSourceMapsEnabled(false)
  t.after(() => process.setSourceMapsEnabled(wereEnabled))
  return folder
}

/** Writes a compiled file whose second line comes from the first line of `source`. */
async function mapped(file: string, source: string, more: object = {}): Promise<void> {
  const map = { version: 3, sources: [source], names: [], mappings: ';AAAA', ...more }
  await writeFile(file, `'use strict'\nthrow 1\n//# sourceMappingURL=${basename(file)}.map\n`)
  await writeFile(`${file}.map`, JSON.stringify(map))
}

test('a place that its source map names no source for stays as it is', async t => {
  const file = join(await emptyFolder(t), 'a.js')
  await mapped(file, 'a.ts', { mappings: ';A,CAAA' })
  const stack = `Error: x\n    at run (${file}:2:1)`
  assert.equal(mapStack(stack), stack)
})

test('a source that is not a file is named next to the compiled place', async t => {
  const file = join(await emptyFolder(t), 'a.js')
  await mapped(file, 'webpack://shop/./src/(group)/a.ts')
  const stack = mapStack(`Error: x\n    at run (${file}:2:1)\n    at async ${file}:2:1\n    at ${file}:2:1`)
  assert.deepEqual(stack.split('\n').slice(1), [
    `    at run [webpack://shop/src/(group)/a.ts:1:1] (${file}:2:1)`,
    `    at async [webpack://shop/src/(group)/a.ts:1:1] (${file}:2:1)`,
    `    at [webpack://shop/src/(group)/a.ts:1:1] (${file}:2:1)`,
  ])
  for (const line of stack.split('\n').slice(1)) {
    const { file: read, line: number } = readFrame(line)!
    assert.deepEqual([read, number], [file, 2])
  }
})

test('the URL of a file on Windows is a path with a drive letter', () => {
  assert.equal(pathOf('file:///C:/srv/a%20b.js'), 'C:/srv/a b.js')
  assert.equal(pathOf('file:///srv/a.js'), '/srv/a.js')
})

test('only the part of a stack that is kept is mapped, and no more than 50 of its lines', async t => {
  const folder = await emptyFolder(t)
  const file = join(folder, 'a.js')
  await mapped(file, 'a.ts')
  const frame = `    at run (${file}:2:1)`
  const source = `    at run (${join(folder, 'a.ts')}:1:1)`
  const many = mapStack(`Error: x\n${Array(80).fill(frame).join('\n')}`).split('\n')
  assert.deepEqual([many[1], many[50], many[51], many.length], [source, source, frame, 81])
  const late = `Error: ${'x'.repeat(10_000)}\n${frame}`
  assert.equal(mapStack(late), late)
})

test('a source map of more than 16 MB is not read', async t => {
  const file = join(await emptyFolder(t), 'a.js')
  await mapped(file, 'a.ts', { padding: ' '.repeat(16 * 2 ** 20) })
  const stack = `Error: x\n    at run (${file}:2:1)`
  assert.equal(mapStack(stack), stack)
})

test('only a few large source maps stay in memory, and one that was dropped is read again', async t => {
  const folder = await emptyFolder(t)
  const line = (name: string) => mapStack(`Error: x\n    at run (${join(folder, name)}:2:1)`).split('\n')[1]
  const padding = ' '.repeat(15 * 2 ** 20)
  await mapped(join(folder, '0.js'), 'old.ts', { padding })
  for (const name of ['1.js', '2.js', '3.js', '4.js']) await mapped(join(folder, name), 'other.ts', { padding })
  assert.match(line('0.js')!, /old\.ts:1:1/)
  await mapped(join(folder, '0.js'), 'new.ts')
  assert.match(line('0.js')!, /old\.ts:1:1/)
  for (const name of ['1.js', '2.js', '3.js', '4.js']) assert.match(line(name)!, /other\.ts:1:1/)
  assert.match(line('0.js')!, /new\.ts:1:1/)
})
