import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { findRoot } from '../../scripts/job-schema-page.ts'
import { publicApi, publicApiFile } from '../../scripts/public-api.ts'

const root = findRoot(import.meta.dirname)
const folder = mkdtempSync(join(tmpdir(), 'pawl-package-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
const [packed] = JSON.parse(
  execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }),
) as [{ filename: string; files: { path: string }[] }]
const paths = new Set(packed.files.map(({ path }) => path))

test('publint finds nothing wrong with the package', async () => {
  const { messages, pkg } = await publint({ pkgDir: root, pack: 'npm', strict: true })
  assert.deepEqual(
    messages.map(message => formatMessage(message, pkg)),
    [],
  )
})

test('every entry point has types that fit how it is imported', async () => {
  const data = new Uint8Array(readFileSync(join(folder, packed.filename)))
  const analysis = await checkPackage(createPackageFromTarballData(data))
  assert.ok(analysis.types !== false)
  // Pawl has only ES modules, and requires a version of Node that can `require` them. Its types for CommonJS say so.
  const isExpected = (problem: { kind: string; resolutionKind?: string }) =>
    ['CJSResolvesToESM', 'FalseCJS'].includes(problem.kind) || problem.resolutionKind === 'node10'
  assert.deepEqual(
    analysis.problems.filter(problem => !isExpected(problem)),
    [],
  )
})

test('a CommonJS project that requires Pawl compiles under module node16, and its types are checked', () => {
  const project = join(folder, 'commonjs')
  mkdirSync(join(project, 'node_modules'), { recursive: true })
  symlinkSync(root, join(project, 'node_modules/pawl'))
  symlinkSync(join(root, 'node_modules/@types'), join(project, 'node_modules/@types'))
  writeFileSync(join(project, 'package.json'), '{ "name": "commonjs" }')
  writeFileSync(
    join(project, 'index.ts'),
    `import { defineTask, pawl } from 'pawl'
import { connect } from 'pawl/client'
import { startServer } from 'pawl/server'
import { runTask } from 'pawl/testing'
import worker = require('pawl/worker')
export const greet = defineTask({ type: 'greet', handler: ({ name }: { name: string }) => name.length })
export async function main() {
  const handle = await (await pawl()).enqueue(greet, { name: 'Ada' })
  const length: number = await handle.result()
  // @ts-expect-error: the payload has no such property
  await connect().enqueue(greet, { nme: 'Ada' })
  return [length, startServer, runTask, worker.startWorker]
}
`,
  )
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  for (const module of ['node16', 'nodenext']) {
    const flags = ['--module', module, '--target', 'es2022', '--strict', '--noEmit', '--skipLibCheck', 'false']
    const { status, stdout } = spawnSync(process.execPath, [tsc, ...flags, 'index.ts'], {
      cwd: project,
      encoding: 'utf8',
    })
    assert.deepEqual([module, status, stdout], [module, 0, ''])
  }
})

/** Opens the embedded store, which runs in a thread. */
const opens = "const engine = await pawl(); await engine.close(); console.log('opened')"

for (const [how, flags, code] of [
  ['as a text of node -e', ['-e'], `(async () => { const { pawl } = require('pawl'); ${opens} })()`],
  ['as a module of node -e', ['--input-type=module', '-e'], `import { pawl } from 'pawl'; ${opens}`],
  [
    'with a loader',
    ['--import', 'jiti/register', '--input-type=module', '-e'],
    `import { pawl } from 'pawl'; ${opens}`,
  ],
] as const) {
  test(`a program that runs ${how} can open the embedded store`, () => {
    const { stdout, stderr } = spawnSync(process.execPath, [...flags, code], { cwd: root, encoding: 'utf8' })
    assert.equal(stdout, 'opened\n', stderr)
  })
}

test('no package that is installed with Pawl asks for a newer Node than Pawl does', () => {
  const read = (file: string) => JSON.parse(readFileSync(join(root, file), 'utf8'))
  const { packages } = read('package-lock.json') as {
    packages: Record<string, { dev?: true; optional?: true; engines?: { node?: string } }>
  }
  const demanding = Object.entries(packages).filter(([, { dev, engines }]) => {
    const oldest = (engines?.node ?? '').split('||').map(range => Number(/^\s*[>=^~v]*\s*(\d+)/.exec(range)?.[1] ?? 0))
    return !dev && !oldest.some(major => major <= 20)
  })
  assert.deepEqual(demanding, [])
})

test('the types that users see change only together with their snapshot', () => {
  const snapshot = readFileSync(join(root, publicApiFile), 'utf8')
  const hint = `The public types differ from ${publicApiFile}. If that is intended, run npm run docs and commit the file.`
  assert.equal(publicApi(), snapshot, hint)
})

test('source maps hold their sources or name files of the package', () => {
  const maps = [...paths].filter(path => path.endsWith('.js.map'))
  assert.ok(maps.length > 100)
  for (const path of paths) {
    const [, map] = path.endsWith('.js')
      ? (/^\/\/# sourceMappingURL=(\S+)$/m.exec(readFileSync(join(root, path), 'utf8')) ?? [])
      : []
    assert.ok(map === undefined || paths.has(join(dirname(path), map)), `${path} names ${map}`)
  }
  for (const path of maps) {
    const { sources, sourcesContent = [] } = JSON.parse(readFileSync(join(root, path), 'utf8'))
    for (const [at, source] of sources.entries()) {
      const isThere = sourcesContent[at] !== undefined || paths.has(join(dirname(path), source))
      assert.ok(isThere, `${path} names ${source}`)
    }
  }
})

test('the package holds its license, changelog, docs and threat model', () => {
  for (const path of ['LICENSE', 'CHANGELOG.md', 'README.md', 'SECURITY.md', 'docs/getting-started.md'])
    assert.ok(paths.has(path), path)
})

test('no file, export or dependency of the project is unused', () => {
  const knip = join(root, 'node_modules/knip/bin/knip.js')
  const { status, stdout } = spawnSync(process.execPath, [knip], { cwd: root, encoding: 'utf8' })
  assert.equal(status, 0, stdout)
})
