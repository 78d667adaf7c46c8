/** How a command ends, and that none of its processes survives. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { removeFolder } from '../../src/commands/attempt-folder.ts'
import { commandRig, isAlive, ownFolder, pidsIn } from '../harness/command-rig.ts'
import { eventually } from '../harness/eventually.ts'

const bounded = { timeout: 600_000 }
/** macOS has no `setsid`. */
const onLinux = { ...bounded, skip: process.platform !== 'linux' }
const shell = (text: string, more: object = {}) => ({ run: { command: ['sh', '-c', text], ...more } })

/** Two processes that ignore SIGTERM, parent and child. Both print their process ids. */
const stubborn = 'trap "" TERM; sh -c \'echo pid $$; while :; do sleep 0.1; done\' & echo pid $$; wait; wait'

const untilUp = 'until [ -e up ]; do sleep 0.01; done'

test('an exit code is retried by policy, unless the task says that it is permanent', bounded, async t => {
  const rig = commandRig(t)
  const failed = await rig.script('echo to be ignored; echo the reason >&2; exit 3')
  assert.deepEqual([failed.outcome, failed.error?.permanent, failed.error?.step], ['failed', undefined, 'exec'])
  assert.equal(failed.error!.message, 'The command ended with exit code 3. The end of its stderr:\nthe reason')
  const permanent = await rig.run(shell('exit 3', { permanentExitCodes: [2, 3] }))
  assert.deepEqual([permanent.outcome, permanent.error?.permanent, permanent.error?.step], ['failed', true, 'exec'])
  assert.deepEqual(rig.leftovers(), [])
})

test('a command that is killed by a signal says by which', bounded, async t => {
  const rig = commandRig(t)
  const { outcome, error } = await rig.script('kill -SEGV $$')
  assert.deepEqual([outcome, error?.permanent], ['failed', undefined])
  assert.match(error!.message, /was killed by SIGSEGV \(11\)/)
  assert.match((await rig.script('kill -KILL $$')).error!.message, /SIGKILL \(9\); .* out of memory/)
})

test('a program that is not there, or may not be run, is a permanent failure with a hint', bounded, async t => {
  const rig = commandRig(t)
  const plain = join(ownFolder(t), 'plain')
  writeFileSync(plain, '#!/bin/sh\n', { mode: 0o644 })
  for (const [program, expected] of [
    ['no-such-program', /The program "no-such-program" was not found in PATH .*ENOENT.*installed/],
    [plain, /cannot be executed \(EACCES\).*executable/],
    ['/etc', /EACCES/],
    ['./relative', /ENOENT/],
  ] as const) {
    const { outcome, error } = await rig.run({ run: { command: [program] } })
    assert.deepEqual([outcome, error?.permanent, error?.step], ['failed', true, 'exec'])
    assert.match(error!.message, expected)
  }
  const long = await rig.run({ run: { command: ['echo', 'x'.repeat(4_000_000)] } })
  assert.deepEqual([long.outcome, long.error?.permanent], ['failed', true])
  assert.match(long.error!.message, /E2BIG/)
})

test('after a soft cancel a command may finish its work, and succeeds with what it made', bounded, async t => {
  const rig = commandRig(t)
  const text = 'trap "echo saved > \\"$PAWL_OUT/saved\\"; exit 0" TERM; echo ready; sleep 1000 & wait'
  const doing = rig.start({ ...shell(text), outputs: 'shelf://out/' })
  await doing.logged('it runs', 'ready')
  doing.interrupt('cancelled', 3600)
  const { outcome, output } = await doing.settled
  assert.equal(outcome, 'succeeded')
  assert.deepEqual(
    (output as { files: { name: string }[] }).files.map(({ name }) => name),
    ['saved'],
  )
})

test('a command that ends by the SIGTERM of a soft cancel is cancelled', bounded, async t => {
  const rig = commandRig(t)
  const doing = rig.start(shell('echo ready; sleep 1000'))
  await doing.logged('it runs', 'ready')
  doing.interrupt('cancelled', 3600)
  const { outcome, reason } = await doing.settled
  assert.equal(outcome, 'cancelled')
  assert.match(reason!, /killed by SIGTERM/)
})

test('a family that ignores SIGTERM is killed when the grace of a soft cancel is over', bounded, async t => {
  const rig = commandRig(t)
  const doing = rig.start(shell(stubborn))
  await eventually('both run', () => pidsIn(doing.lines()).length === 2)
  doing.interrupt('cancelled', 0.2)
  assert.equal((await doing.settled).outcome, 'cancelled')
  assert.deepEqual(pidsIn(doing.lines()).filter(isAlive), [])
  assert.deepEqual(rig.leftovers(), [])
})

test('a soft cancel that turns hard, as when the lease goes, kills at once', bounded, async t => {
  const rig = commandRig(t)
  const doing = rig.start(shell(stubborn))
  await eventually('both run', () => pidsIn(doing.lines()).length === 2)
  doing.interrupt('cancelled', 3600)
  assert.deepEqual(pidsIn(doing.lines()).map(isAlive), [true, true])
  doing.interrupt('lease-lost')
  assert.equal((await doing.settled).outcome, 'cancelled')
  assert.deepEqual(pidsIn(doing.lines()).filter(isAlive), [])
})

for (const [reason, outcome] of [
  ['lease-lost', 'released'],
  ['shutdown', 'released'],
] as const) {
  test(`${reason}: the whole family is killed at once, and the task is given back`, bounded, async t => {
    const rig = commandRig(t)
    const doing = rig.start(shell(stubborn))
    await eventually('both run', () => pidsIn(doing.lines()).length === 2)
    doing.interrupt(reason)
    assert.equal((await doing.settled).outcome, outcome)
    assert.deepEqual(pidsIn(doing.lines()).filter(isAlive), [])
    assert.deepEqual(rig.leftovers(), [])
  })
}

test(
  'a command that takes too long is killed with its family; what it said and the step are kept',
  bounded,
  async t => {
    const rig = commandRig(t)
    const doing = rig.start(shell(`printf half; ${stubborn}`), { timeoutSeconds: 1 })
    const { outcome, error } = await doing.settled
    assert.deepEqual([outcome, error?.reasonCode, error?.step], ['failed', 'timeout', 'exec'])
    assert.ok(doing.lines().some(line => line.startsWith('half')))
    await eventually('nothing is left', () => !pidsIn(doing.lines()).some(isAlive) && rig.leftovers().length === 0)
  },
)

test('what a command leaves running in the background ends with it', bounded, async t => {
  const rig = commandRig(t)
  const { outcome, lines } = await rig.script(
    `trap "" HUP; (sh -c 'echo pid $$; touch up; exec sleep 1000' &); ${untilUp}; echo pid $$`,
  )
  assert.equal(outcome, 'succeeded')
  assert.equal(pidsIn(lines).length, 2)
  assert.deepEqual(pidsIn(lines).filter(isAlive), [])
})

test('who left the process group is not found, but does not hold up the end either', onLinux, async t => {
  const rig = commandRig(t)
  const { outcome, lines } = await rig.run(
    shell(`setsid sh -c 'echo pid $$; touch up; exec sleep 1000' & ${untilUp}; echo done`),
  )
  const [escaped] = pidsIn(lines)
  process.kill(escaped!, 'SIGKILL')
  assert.deepEqual([outcome, lines.at(-1)], ['succeeded', 'done'])
})

test(
  'a command that never stops making children, which all ignore SIGTERM, is killed with every one',
  bounded,
  async t => {
    const rig = commandRig(t)
    const doing = rig.start(shell('trap "" TERM; echo pid $$; while :; do sleep 1000 & sleep 0.005; done'))
    await doing.logged('it runs', 'pid')
    const [group] = pidsIn(doing.lines())
    await eventually('it has children', () => livingIn(group!) > 20)
    doing.interrupt('cancelled', 0.1)
    assert.equal((await doing.settled).outcome, 'cancelled')
    assert.equal(livingIn(group!), 0)
  },
)

function livingIn(group: number): number {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pgid=,stat='], { encoding: 'utf8' })
  const rows = stdout.split('\n').map(line => line.trim().split(/\s+/))
  return rows.filter(([pgid, state]) => Number(pgid) === group && !state?.startsWith('Z')).length
}

test('a cancel that comes before the command keeps it from starting', bounded, async t => {
  const rig = commandRig(t)
  const doing = rig.start(shell(`touch ${rig.folder}/ran`))
  doing.interrupt('cancelled', 3600)
  assert.equal((await doing.settled).outcome, 'cancelled')
  assert.equal(existsSync(`${rig.folder}/ran`), false)
})

test('an attempt folder that has become a link is removed as a link, and what it leads to stays', async t => {
  const elsewhere = ownFolder(t)
  writeFileSync(join(elsewhere, 'kept'), 'kept')
  const place = join(ownFolder(t), 'attempt')
  symlinkSync(elsewhere, place)
  await removeFolder(place)
  assert.deepEqual([existsSync(place), readFileSync(join(elsewhere, 'kept'), 'utf8')], [false, 'kept'])
})
