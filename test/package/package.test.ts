import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
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
  // Pawl has only ES modules, and requires a version of Node that can `require` them.
  const isExpected = (problem: { kind: string; resolutionKind?: string }) =>
    problem.kind === 'CJSResolvesToESM' || problem.resolutionKind === 'node10'
  assert.deepEqual(
    analysis.problems.filter(problem => !isExpected(problem)),
    [],
  )
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
