import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { usersFrame } from '../kernel/stack.ts'
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
