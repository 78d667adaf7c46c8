/** Programs with fixed paths find their files there, one task at a time, and no link is left behind. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ownerToken } from '../../src/commands/attempt-folder.ts'
import { commandRig, ownFolder } from '../harness/command-rig.ts'
import { shelf } from '../harness/shelf.ts'

const bounded = { timeout: 600_000 }
const inputs = [{ name: 'data', uri: 'shelf://box/', path: '' }]
const outputs = 'shelf://out/'
const turns = '.pawl-turns'

test('a program finds its inputs and leaves its outputs at the paths that it knows', bounded, async t => {
  const mount = join(ownFolder(t), 'pfs')
  const rig = commandRig(t, shelf({ f: 'hello' }))
  const text = `cp ${mount}/data/f ${mount}/out/g; ls ${mount}`
  const { outcome, lines } = await rig.script(text, { run: { mount }, inputs, outputs })
  assert.deepEqual([outcome, lines], ['succeeded', ['data', 'out']])
  assert.deepEqual(
    rig.uploaded.map(({ name }) => name),
    ['g'],
  )
  assert.deepEqual([readdirSync(mount), readdirSync(join(mount, turns))], [[turns], []])
})

test('tasks that share a mount take turns, also those of other workers', bounded, async t => {
  const mount = join(ownFolder(t), 'pfs')
  const book = join(ownFolder(t), 'book')
  const rigs = [commandRig(t, shelf({ f: 'a' })), commandRig(t, shelf({ f: 'b' }))]
  const text = `set -e; mkdir ${book}; sleep 0.05; cat ${mount}/data/f; rmdir ${book}`
  const ends = await Promise.all(
    [0, 1, 0, 1].map(index => rigs[index]!.script(text, { run: { mount }, inputs, outputs })),
  )
  assert.deepEqual(
    ends.map(({ outcome }) => outcome),
    Array(4).fill('succeeded'),
  )
  assert.deepEqual(
    ends.flatMap(({ lines }) => lines),
    ['a', 'b', 'a', 'b'],
  )
})

test('a task that waits for its turn can be called off, and the turn goes to the next', bounded, async t => {
  const mount = join(ownFolder(t), 'pfs')
  const rig = commandRig(t)
  const first = rig.start({ run: { command: ['sh', '-c', 'echo ready; sleep 1000'], mount } })
  await first.logged('it has the turn', 'ready')
  const second = rig.start({ run: { command: ['true'], mount } })
  second.interrupt('cancelled', 3600)
  assert.equal((await second.settled).outcome, 'cancelled')
  first.interrupt('lease-lost')
  await first.settled
  assert.equal((await rig.run({ run: { command: ['true'], mount } })).outcome, 'succeeded')
  assert.deepEqual(readdirSync(join(mount, turns)), [])
})

test('what a dead worker left at a mount is removed by whoever comes next', bounded, async t => {
  const mount = join(ownFolder(t), 'pfs')
  mkdirSync(join(mount, turns), { recursive: true })
  symlinkSync('/gone/in/data', join(mount, 'data'))
  symlinkSync('/gone/in/other', join(mount, 'other'))
  const { pid } = spawnSync('true')
  const dead = ownerToken().replace(`-${process.pid}-`, `-${pid}-`)
  writeFileSync(join(mount, turns, `${dead}.1`), JSON.stringify({ data: '/gone/in/data', other: '/gone/in/other' }))
  const rig = commandRig(t, shelf({ f: 'hello' }))
  const { outcome, lines } = await rig.script(`cat ${mount}/data/f; ls ${mount}`, { run: { mount }, inputs })
  assert.deepEqual([outcome, lines], ['succeeded', ['hello' + 'data', 'out']], hostname())
  assert.deepEqual([readdirSync(mount), readdirSync(join(mount, turns))], [[turns], []])
})

test('a mount that cannot be made is a permanent failure with a hint, and touches nothing', bounded, async t => {
  const folder = ownFolder(t)
  mkdirSync(join(folder, 'data'))
  writeFileSync(join(folder, 'file'), '')
  const rig = commandRig(t, shelf({ f: 'f' }))
  for (const [mount, expected] of [
    [folder, /data" cannot be created: EEXIST.*already exists/],
    [join(folder, 'file'), /cannot be created: .*The worker's user must be able/],
    ['/proc/pfs', /cannot be created: .*The worker's user must be able/],
  ] as const) {
    const { outcome, error } = await rig.run({ run: { command: ['true'], mount }, inputs })
    assert.deepEqual([outcome, error?.permanent, error?.step], ['failed', true, 'input'])
    assert.match(error!.message, expected)
  }
  assert.deepEqual(readdirSync(folder).sort(), [turns, 'data', 'file'])
  const clash = await rig.run({
    run: { command: ['true'], mount: folder },
    inputs: [{ name: 'out', uri: 'shelf://box/', path: '' }],
  })
  assert.match(clash.error!.message, /cannot be called "out"/)
})
