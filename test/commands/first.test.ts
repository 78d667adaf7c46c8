/** A command task from the user's point of view: input files, a program, output files. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { commandRig } from '../harness/command-rig.ts'
import { shelf } from '../harness/shelf.ts'

const bounded = { timeout: 600_000 }

test('a command finds its inputs by name, and what it leaves is kept under its own attempt', bounded, async t => {
  const rig = commandRig(t, shelf({ 'docs/a.txt': 'one\n', 'docs/deep/b.txt': 'two\n', 'list.csv': 'x,y' }))
  const { outcome, output, lines } = await rig.script(
    `cat "$PAWL_IN"/doc/a.txt "$PAWL_IN"/doc/deep/b.txt; pwd; echo "$HOME"
     mkdir "$PAWL_OUT/sub" "$PAWL_OUT/none"; head -c 1 "$PAWL_IN"/table/list.csv > "$PAWL_OUT/sub/a b"`,
    {
      inputs: [
        { name: 'doc', uri: 'shelf://box/docs/', path: '' },
        { name: 'table', uri: 'shelf://box/list.csv', path: 'list.csv' },
      ],
      outputs: 'shelf://out/',
    },
  )
  assert.equal(outcome, 'succeeded')
  assert.deepEqual(lines.slice(0, 2), ['one', 'two'])
  assert.match(lines[2]!, /\/scratch$/)
  assert.equal(lines[3], lines[2])
  const { files, count, exitCode, seconds } = output as Record<string, unknown>
  const sha256 = createHash('sha256').update('x').digest('hex')
  assert.deepEqual(files, [{ name: 'sub/a b', uri: 'shelf://out/sub/a%20b', size: 1, sha256 }])
  assert.deepEqual([count, exitCode, typeof seconds], [1, 0, 'number'])
  const [{ stagedUri } = { stagedUri: '' }] = rig.registered
  assert.match(stagedUri, /^shelf:\/\/out\/\.pawl\/[^/]+\/3\/sub\/a%20b$/)
  assert.equal(rig.files.kept.get(stagedUri)?.toString(), 'x')
  assert.deepEqual(rig.uploaded, files)
  assert.deepEqual(rig.leftovers(), [])
})

test('a command sees what it needs of its surroundings, and nothing of the worker’s', bounded, async t => {
  process.env.WORKERS_OWN = 'private'
  t.after(() => delete process.env.WORKERS_OWN)
  const rig = commandRig(t)
  const { lines } = await rig.run({ run: { command: ['env'], env: { GREETING: 'a\tb', LANG: 'C' } } })
  const seen = Object.fromEntries(lines.map(line => line.split('=') as [string, string]))
  const { PAWL_IN, PAWL_OUT, PAWL_SCRATCH, PAWL_TASK_ID, PATH, HOME, TMPDIR, GREETING, LANG, PWD, ...rest } = seen
  assert.deepEqual([PATH, GREETING, LANG, rest], [process.env.PATH, 'a\tb', 'C', { PAWL_ATTEMPT: '2' }])
  assert.deepEqual([HOME, TMPDIR, PWD ?? HOME], [PAWL_SCRATCH, PAWL_SCRATCH, PAWL_SCRATCH])
  assert.ok(PAWL_IN?.endsWith('/in') && PAWL_OUT?.endsWith('/out') && PAWL_TASK_ID !== '')
})

test('a payload that nobody could run is set aside, and says what is wrong with it', bounded, async t => {
  const rig = commandRig(t)
  const cases: [unknown, RegExp][] = [
    [null, /must be an object/],
    [{}, /have a "run"/],
    [{ run: {} }, /have a "command"/],
    [{ run: { command: [] } }, /begin with a program/],
    [{ run: { command: ['a\0b'] } }, /string without NUL/],
    [{ run: { command: ['-c'] } }, /not with an option/],
    [{ run: { command: ['true'], comand: 1 } }, /did you mean "command"/],
    [{ run: { command: ['true'], env: { 'A=B': 'c' } } }, /letters, digits and "_"/],
    [{ run: { command: ['true'], secrets: { A: { secret: '..', key: 'k' } } } }, /"secret" that must be a name/],
    [{ run: { command: ['true'], permanentExitCodes: [0] } }, /exit codes/],
    [{ run: { command: ['true'], mount: 'pfs' } }, /absolute path/],
    [{ run: { command: ['true'] }, inputs: [{ name: 'a', uri: 'file:///a', path: '' }] }, /names a file/],
    [{ run: { command: ['true'] }, outputs: 'file:///a' }, /ends in "\/"/],
  ]
  for (const [payload, expected] of cases) {
    const { outcome, error } = await rig.run(payload)
    assert.deepEqual([outcome, error?.reasonCode, error?.step], ['dead_lettered', 'validation_failed', 'input'])
    assert.match(error!.message, expected)
  }
})

test('outputs that nobody wants are dropped, and many are counted and listed in part', bounded, async t => {
  const rig = commandRig(t)
  const text = 'i=0; while [ $i -lt 1001 ]; do echo $i > "$PAWL_OUT/$i"; i=$((i+1)); done'
  const dropped = await rig.script(text)
  assert.deepEqual([dropped.outcome, (dropped.output as { count: number }).count], ['succeeded', 0])
  const { output } = await rig.script(text, { outputs: 'shelf://out/' })
  const { files, count } = output as { files: unknown[]; count: number }
  assert.deepEqual([files.length, count, rig.uploaded.length], [1000, 1001, 1001])
})

test('an engine that keeps no account of files is told apart from a command that failed', bounded, async t => {
  const rig = commandRig(t, shelf(), { artifactsOf: () => undefined })
  const { outcome, error } = await rig.script('echo ran', { outputs: 'shelf://out/' })
  assert.deepEqual([outcome, error?.permanent], ['failed', true])
  assert.match(error!.message, /does not track files/)
})
