/** Names in a bucket may be anything: each input arrives, or the task fails permanently with an error that names it. */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { test } from 'node:test'
import { commandRig } from '../harness/command-rig.ts'
import { shelf } from '../harness/shelf.ts'

const bounded = { timeout: 600_000 }
const box = { name: 'box', uri: 'shelf://box/', path: '' }
const show = { run: { command: ['sh', '-c', 'cd "$PAWL_IN" && find . -type f -exec cat {} +'] } }

for (const [what, path] of [
  ['climbs out', '../../escaped'],
  ['climbs out from inside', 'a/../../../escaped'],
  ['is absolute', '/tmp/escaped'],
  ['has an empty part', 'a//b'],
  ['is a dot', 'a/./b'],
  ['holds a NUL', 'a\0b'],
  ['is too long for a disk', 'x'.repeat(256)],
  ['is too long in all', `${`${'y'.repeat(200)}/`.repeat(30)}z`],
] as const) {
  test(`a name that ${what} fails the task for good, by its name, and writes nothing elsewhere`, bounded, async t => {
    const rig = commandRig(t, shelf({ [path]: 'gone', fine: 'fine' }))
    const { outcome, error } = await rig.run({ ...show, inputs: [box] })
    assert.deepEqual([outcome, error?.permanent, error?.step], ['failed', true, 'fetch'])
    assert.ok(error!.message.includes(JSON.stringify(path).slice(1, 100)), error!.message)
    assert.deepEqual([rig.leftovers(), readdirSync(dirname(rig.folder))], [[], ['attempts']])
  })
}

for (const name of ['..', '.', 'a/b', '']) {
  test(`an input called ${JSON.stringify(name)} is refused`, bounded, async t => {
    const rig = commandRig(t, shelf({ f: 'f' }))
    const { outcome, error } = await rig.run({ ...show, inputs: [{ name, uri: 'shelf://box/f', path: 'f' }] })
    assert.ok(outcome === 'dead_lettered' || error?.permanent === true, outcome)
  })
}

test('odd names that a disk can hold arrive as they are', bounded, async t => {
  const odd = ['new\nline', ' blank ', '-rf', 'ünï/cödé', "it's", '$(touch x)', 'a\\b', '%2e%2e', '..hidden', '😀']
  const rig = commandRig(t, shelf(Object.fromEntries(odd.map((name, index) => [name, `${index}\n`]))))
  const { outcome, lines } = await rig.run({ ...show, inputs: [box] })
  assert.equal(outcome, 'succeeded')
  assert.deepEqual(
    lines.map(Number).sort((one, other) => one - other),
    odd.map((_, index) => index),
  )
})

test(
  'a file and a folder of one name are told apart from each other by the name that has no place',
  bounded,
  async t => {
    const rig = commandRig(t, shelf({ a: 'file', 'a/b': 'inside' }))
    const { outcome, error } = await rig.run({ ...show, inputs: [box] })
    assert.deepEqual([outcome, error?.permanent, error?.step], ['failed', true, 'fetch'])
    assert.match(error!.message, /The input "box\/a(\/b)?" cannot be written/)
  },
)

test('of two inputs with one place the second is an error, and never writes over the first', bounded, async t => {
  const rig = commandRig(t, shelf({ one: '1', two: '2' }))
  const inputs = ['one', 'two'].map(file => ({ name: 'in', uri: `shelf://box/${file}`, path: 'same' }))
  const { outcome, error } = await rig.run({ ...show, inputs })
  assert.deepEqual([outcome, error?.permanent], ['failed', true])
  assert.match(error!.message, /"in\/same" cannot be written.*treats as the same/)
})

test('a bucket’s marks for folders become folders', bounded, async t => {
  const rig = commandRig(t, shelf({ '': '', 'empty/': '', 'full/': '', 'full/file': 'in it' }))
  const { outcome, lines } = await rig.run({
    run: { command: ['sh', '-c', 'cd "$PAWL_IN/box" && find . | sort'] },
    inputs: [box],
  })
  assert.deepEqual([outcome, lines], ['succeeded', ['.', './empty', './full', './full/file']])
})

test('a folder inside an input keeps its path', bounded, async t => {
  const rig = commandRig(t, shelf({ '2024/01/a': 'a' }))
  const { lines } = await rig.run({
    run: { command: ['sh', '-c', 'cd "$PAWL_IN" && find . -type f'] },
    inputs: [{ name: 'days', uri: 'shelf://box/2024/01/', path: '2024/01/' }],
  })
  assert.deepEqual(lines, ['./days/2024/01/a'])
})

test('no more inputs are fetched at once than the worker was told', bounded, async t => {
  const files = shelf(Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`f${index}`, 'x'])))
  const rig = commandRig(t, files, { transfers: 3 })
  let now = 0
  let most = 0
  const { open } = files
  Object.assign(files, {
    async open(uri: string) {
      most = Math.max(most, ++now)
      await new Promise(setImmediate)
      const bytes = await open(uri)
      bytes.once('close', () => now--)
      return bytes
    },
  })
  assert.equal((await rig.run({ ...show, inputs: [box] })).outcome, 'succeeded')
  assert.deepEqual([most > 1, most <= 3], [true, true])
})

test('a full disk is a failure that is tried again, and says so', bounded, async t => {
  const files = shelf({ big: 'big' })
  files.fault = method => {
    if (method === 'open') throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
  }
  const { outcome, error } = await commandRig(t, files).run({ ...show, inputs: [box] })
  assert.deepEqual([outcome, error?.permanent, error?.step], ['failed', undefined, 'fetch'])
  assert.equal(error?.reasonCode, 'infrastructure_failure')
  assert.match(error!.message, /^DISK_FULL.*"box\/big"/)
})

test('an input that cannot be had now is tried again by policy', bounded, async t => {
  const rig = commandRig(t, shelf())
  const { outcome, error } = await rig.run({ ...show, inputs: [{ name: 'a', uri: 'shelf://box/none', path: 'none' }] })
  assert.deepEqual([outcome, error?.permanent, error?.step], ['failed', undefined, 'fetch'])
})

test('a cancel stops the fetching', bounded, async t => {
  const files = shelf({ one: '1', two: '2' })
  const rig = commandRig(t, files, { transfers: 1 })
  const doing = rig.start({ ...show, inputs: [box] })
  files.fault = method => {
    if (method === 'open') doing.interrupt('cancelled', 3600)
  }
  assert.equal((await doing.settled).outcome, 'cancelled')
  assert.deepEqual(rig.leftovers(), [])
})
