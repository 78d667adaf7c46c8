/** `pawl init`: from an empty folder, or a project that exists, to a task that runs. */
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { findRoot } from '../../scripts/job-schema-page.ts'
import { type Cli, cli } from '../harness/cli.ts'

const bounded = { timeout: 600_000 }

/** As after `npm install pawl`. Nothing else can be installed, because no program is on the path. */
function install({ folder }: Cli): void {
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(findRoot(import.meta.dirname), join(folder, 'node_modules/pawl'))
}

const filesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true, encoding: 'utf8' })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter(file => !file.startsWith('node_modules'))
    .sort()

test('an empty folder becomes a project whose task runs, without a network if Pawl is installed', bounded, async t => {
  const pawl = await cli(t, { PATH: '' })
  install(pawl)
  const { code, out, err } = await pawl.run(['init', 'my app'])
  assert.deepEqual([code, err], [0, ''])
  assert.deepEqual(filesIn(join(pawl.folder, 'my app')), [
    '.gitignore',
    'README.md',
    'package.json',
    'tasks/greet.ts',
    'tests/greet.test.ts',
    'tsconfig.json',
  ])
  const { name, scripts } = JSON.parse(readFileSync(join(pawl.folder, 'my app/package.json'), 'utf8'))
  assert.deepEqual([name, scripts.dev], ['my-app', 'pawl dev'])
  assert.match(out, /Created my app\/tasks\/greet\.ts\n[\s\S]*Next:\n {2}cd "my app"\n {2}npx pawl dev {3}/)

  const [, add = ''] = /npx pawl (task add greet '.*' --wait)/.exec(out) ?? []
  const cwd = ['--data', 'data', '--tasks', 'my app/tasks']
  const dev = pawl.start(['dev', '--port', '0', '--json', ...cwd])
  const { url } = JSON.parse(await dev.printed('its address', line => line.includes('"url"')))
  const words = add.match(/'[^']*'|\S+/g)!.map(word => word.replaceAll("'", ''))
  const added = await pawl.run([...words, '--server', url])
  assert.deepEqual([added.code, added.out], [0, 'greet succeeded: {"greeting":"Hello, Ada!"}\n'], added.err)
})

test('in a project that exists, no file is changed, and what is missing is added', bounded, async t => {
  const pawl = await cli(t, { PATH: '' })
  const own = { 'package.json': '{"name":"mine"}', 'README.md': 'mine', 'src/index.ts': '' }
  mkdirSync(join(pawl.folder, 'src'))
  mkdirSync(join(pawl.folder, 'test'))
  for (const [file, content] of Object.entries(own)) writeFileSync(join(pawl.folder, file), content)
  const first = await pawl.run(['init'])
  assert.equal(first.code, 0, first.err)
  for (const [file, content] of Object.entries(own))
    assert.equal(readFileSync(join(pawl.folder, file), 'utf8'), content)
  assert.match(first.out, /Kept {4}README\.md, which exists/)
  assert.match(first.out, /Next:\n {2}npm install \S+ && npm install --save-dev jiti\n/)
  const files = filesIn(pawl.folder)
  assert.ok(files.includes('src/tasks/greet.ts') && files.includes('test/greet.test.ts'), files.join())
  assert.match(readFileSync(join(pawl.folder, 'test/greet.test.ts'), 'utf8'), /from '\.\.\/src\/tasks\/greet\.ts'/)

  writeFileSync(join(pawl.folder, 'src/tasks/greet.ts'), 'my own')
  assert.equal((await pawl.run(['init'])).code, 0)
  assert.deepEqual(filesIn(pawl.folder), files)
  assert.equal(readFileSync(join(pawl.folder, 'src/tasks/greet.ts'), 'utf8'), 'my own')
})

test('a project that cannot be created or installed is an error that says what to do', bounded, async t => {
  const pawl = await cli(t, { PATH: '' })
  writeFileSync(join(pawl.folder, 'file'), '')
  const file = await pawl.run(['init', 'file'])
  assert.deepEqual([file.code, /it is a file, not a folder/.test(file.err)], [2, true])
  const { code, out } = await pawl.run(['init', 'new', '--json'])
  assert.deepEqual([code, JSON.parse(out).installed], [1, false])
  for (const name of ['tasks', 'tests', 'src/tasks']) {
    const folder = join(pawl.folder, `with-${name}`)
    mkdirSync(join(folder, name, '..'), { recursive: true })
    writeFileSync(join(folder, name), '')
    const refused = await pawl.run(['init', folder, '--no-install'])
    assert.deepEqual([refused.code, /it is a file, not a folder/.test(refused.err)], [2, true], refused.err)
    assert.deepEqual(filesIn(folder), [name])
  }
  mkdirSync(join(pawl.folder, 'it'))
  writeFileSync(join(pawl.folder, 'it/test'), '')
  const beside = await pawl.run(['init', 'it', '--no-install'])
  assert.deepEqual([beside.code, filesIn(join(pawl.folder, 'it')).includes('tests/greet.test.ts')], [0, true])
  const again = await pawl.run(['init', 'other', '--no-install'])
  assert.deepEqual([again.code, /Next:\n {2}cd other *\n {2}npm install/.test(again.out)], [0, true], again.out)
})
