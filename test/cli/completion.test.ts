/** Tests completion in the shells themselves. Shells that are not installed are reported as skipped. */
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { commands } from '../../src/cli/commands.ts'
import { defineTask } from '../../src/worker/index.ts'
import { cli } from '../harness/cli.ts'
import { served } from '../harness/served.ts'

type Shell = 'bash' | 'zsh' | 'fish'
type Complete = (line: string) => Promise<readonly string[]>

/** Returns the completions of the last word. */
const lines: readonly (readonly [line: string, words: readonly string[]])[] = [
  ['pawl jo', ['job']],
  ['pawl job desc', ['describe']],
  ['pawl worker l', ['list', 'lost']],
  ['pawl job run x.yaml --wa', ['--wait']],
  ['pawl job run --wait --str', ['--strict']],
  ['pawl worker x.ts --conc', ['--concurrency']],
  ['pawl worker list --conc', []],
  ['pawl task list --state dead', ['dead_lettered']],
]
/** Bash is not typed at here, and completes files by itself. */
const typed = [...lines, ['pawl job run a-f', ['a-file.yaml']] as const]

const ask = (shell: Shell, folder: string, args: readonly string[]) =>
  promisify(execFile)(shell, args, {
    cwd: folder,
    env: { PATH: `${join(folder, 'bin')}:${process.env.PATH}`, HOME: folder, TERM: 'dumb' },
  })

const inBash = (folder: string): Complete => {
  const script = `source ./script; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pawl; echo "\${COMPREPLY[*]}"`
  return async line => {
    const { stdout, stderr } = await ask('bash', folder, ['-c', script, 'bash', ...line.split(' ')])
    assert.equal(stderr, '')
    return stdout.trim() === '' ? [] : stdout.trim().split(' ')
  }
}

/** Runs zsh in a pseudo-terminal, types the line and a tab, and then a key that writes the completed line to a file. */
const inZsh = (folder: string): Complete => {
  const script = `zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'eval "$(<script)"; told() { print -r -- "$BUFFER" > seen; BUFFER= }; zle -N told; bindkey "^G" told'
zpty -w -n shell "$1"$'\\t\\a'
zpty -w shell $'\\nexit'
while zpty -r shell chunk; do done`
  return async line => {
    await ask('zsh', folder, ['-f', '-c', script, 'zsh', line])
    const seen = (await readFile(join(folder, 'seen'), 'utf8')).trim()
    return seen === line ? [] : [seen.split(' ').at(-1)!]
  }
}

const inFish = (folder: string): Complete => {
  return async line => {
    const { stdout, stderr } = await ask('fish', folder, ['-c', 'source ./script; complete -C $argv[1]', line])
    assert.equal(stderr, '')
    return stdout
      .split('\n')
      .filter(text => text !== '')
      .map(text => text.split('\t')[0]!)
  }
}

const shells = { bash: inBash, zsh: inZsh, fish: inFish }

for (const shell of ['bash', 'zsh', 'fish'] as const) {
  const isThere = spawnSync(shell, ['-c', 'exit 0']).status === 0
  const skip = isThere ? false : `${shell} is not installed on this machine`
  const title = `${shell} completes commands, flags and the words that a flag takes`
  test(title, { timeout: 600_000, skip }, (t: TestContext) => completes(t, shell))
}

async function completes(t: TestContext, shell: Shell): Promise<void> {
  const pawl = await cli(t)
  const { code, out, err } = await pawl.run(['completion', shell])
  assert.equal(code, 0, err)
  await writeFile(join(pawl.folder, 'script'), out)
  await writeFile(join(pawl.folder, 'a-file.yaml'), '')
  const complete = shells[shell](pawl.folder)
  for (const [line, words] of shell === 'bash' ? lines : typed)
    assert.deepEqual([line, await complete(line)], [line, words])
}

/** A person waits only a moment, a busy machine does not. */
const patience = ['--patience-seconds', '300']

/** The folder has `pawl` on its path, as a user's shell would, and knows the server from its settings. */
async function withServer(t: TestContext, server: string): Promise<string> {
  const { folder } = await cli(t)
  const main = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url))
  await mkdir(join(folder, 'bin'))
  // The script calls `pawl complete`, which waits longer here.
  const program = `#!/bin/sh\nshift\nexec "${process.execPath}" "${main}" complete ${patience.join(' ')} "$@"\n`
  await writeFile(join(folder, 'bin/pawl'), program, { mode: 0o755 })
  await writeFile(join(folder, 'pawl.config.json'), JSON.stringify({ server }))
  return folder
}

for (const shell of ['bash', 'zsh', 'fish'] as const) {
  const isThere = spawnSync(shell, ['-c', 'exit 0']).status === 0
  const skip = isThere ? false : `${shell} is not installed on this machine`
  test(`${shell} completes ids and names that the server knows`, { timeout: 600_000, skip }, async t => {
    const { engine, server } = await served(t)
    await engine.register(defineTask({ type: 'resize', handler: () => null }))
    const { id } = await engine.submit({ name: 'images', stages: [{ name: 'a', task: 'resize' }] })
    const folder = await withServer(t, server.url)
    const pawl = await cli(t)
    await writeFile(join(folder, 'script'), (await pawl.run(['completion', shell])).out)
    const complete = shells[shell](folder)
    // Lists show the end of an id.
    for (const [line, word] of [
      [`pawl job describe ${id.slice(0, 8)}`, id],
      [`pawl job describe ${id.slice(-8)}`, id],
      ['pawl stage cancel --reason tired ', `${id}/a`],
      ['pawl task list --type res', 'resize'],
    ] as const)
      assert.deepEqual([line, await complete(line)], [line, [word]])
  })
}

test('completion names what the server knows, and nothing if there is no server or it is not asked', {
  timeout: 600_000,
}, async t => {
  const { engine, server } = await served(t)
  const { id } = await engine.enqueue('resize', null)
  const pawl = await cli(t, { PAWL_SERVER: server.url })
  const complete = async (typed: string, word = '', env = {}, wait = patience) => {
    const { code, out, err } = await pawl.run(['complete', ...wait, '--', typed, word], { env })
    assert.deepEqual([code, err], [0, ''])
    return out
  }
  assert.equal(await complete('task describe'), `${id} resize queued\n`)
  assert.equal(await complete('task cancel --reason no', id.slice(-6)), `${id} resize queued\n`)
  assert.equal(await complete('task add'), 'resize\n')
  assert.equal(await complete('task list --queue', 're'), 'resize 1 due\n')
  for (const nothing of [
    'task describe abc',
    'task list --state',
    'up',
    'nonsense',
    '',
    'task describe --data pawl-data',
  ])
    assert.equal(await complete(nothing), '', nothing)
  assert.equal(await complete('task describe', '', { PAWL_SERVER: 'http://127.0.0.1:1' }, []), '')
})

test('completion runs no code of the folder, and offers no word that a shell would read as more than a word', {
  timeout: 600_000,
}, async t => {
  const { engine, server } = await served(t)
  for (const queue of ['safe', 'a b', '$(touch ran)', '*', 'a;b', '`b`'])
    await engine.enqueue('resize', null, { queue })
  const pawl = await cli(t, { PAWL_SERVER: server.url })
  for (const file of ['pawl.config.ts', 'other.mjs'])
    await writeFile(
      join(pawl.folder, file),
      `import { writeFileSync } from 'node:fs'\nwriteFileSync('ran', '')\nexport default {}`,
    )
  for (const [typed, env] of [
    ['task list --queue', {}],
    ['task list --config other.mjs --queue', {}],
    ['task list --queue', { PAWL_CONFIG: 'other.mjs' }],
  ] as const) {
    const { out, err } = await pawl.run(['complete', ...patience, '--', typed, ''], { env })
    assert.deepEqual([out, err], ['safe 1 due\n', ''])
  }
  assert.deepEqual((await readdir(pawl.folder)).sort(), ['other.mjs', 'pawl.config.ts'])
})

test('every shell has a script, which knows every command', { timeout: 600_000 }, async t => {
  const pawl = await cli(t)
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, out } = await pawl.run(['completion', shell])
    assert.equal(code, 0)
    for (const { name, hidden } of commands) if (!hidden) assert.ok(out.includes(name), `${shell}: ${name}`)
  }
  const other = await pawl.run(['completion', 'csh'])
  assert.deepEqual([other.code, /must be bash, zsh or fish/.test(other.err)], [2, true])
})
