/** The outputs of a command are stored with their checksums, or the task says which one could not be. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { uploadTries } from '../../src/commands/outputs.ts'
import { Problem } from '../../src/kernel/problem.ts'
import type { ArtifactPort } from '../../src/protocol/files/artifacts.ts'
import { commandRig } from '../harness/command-rig.ts'
import { shelf } from '../harness/shelf.ts'

const bounded = { timeout: 600_000 }
const outputs = 'shelf://out/'

for (const [what, make, name] of [
  ['a link that leads out', 'ln -s /etc/passwd link', 'link'],
  ['a link up', 'mkdir d; ln -s ../../in d/link', 'd/link'],
  ['a link to a folder', 'mkdir d; ln -s d link', 'link'],
  ['a link to nothing', 'ln -s nowhere link', 'link'],
  ['a link to itself', 'ln -s link link', 'link'],
  ['a fifo', 'mkfifo pipe', 'pipe'],
  ['a name of Pawl’s own', 'mkdir .pawl; touch .pawl/x', '.pawl/x'],
] as const) {
  test(`${what} among the outputs is a permanent failure that names it`, bounded, async t => {
    const rig = commandRig(t)
    const { outcome, error } = await rig.script(`cd "$PAWL_OUT"; ${make}`, { outputs })
    assert.deepEqual([outcome, error?.permanent, error?.step], ['failed', true, 'output'])
    assert.ok(error!.message.includes(`The output ${JSON.stringify(name)} cannot be stored`), error!.message)
    assert.deepEqual([rig.registered, rig.leftovers()], [[], []])
  })
}

for (const [what, make] of [
  ['a link to another folder', 'rmdir "$PAWL_OUT"; ln -s /etc "$PAWL_OUT"'],
  ['a link to a folder of its own', 'mkdir mine; touch mine/x; rmdir "$PAWL_OUT"; ln -s "$PWD/mine" "$PAWL_OUT"'],
  ['a file', 'rmdir "$PAWL_OUT"; touch "$PAWL_OUT"'],
  ['nothing', 'rmdir "$PAWL_OUT"'],
  [
    'a folder that a link above it leads to',
    'a=$(dirname "$PAWL_OUT"); mkdir -p "$a.x/out"; touch "$a.x/out/x"; mv "$a" "$a.y"; ln -s "$a.x" "$a"',
  ],
] as const) {
  test(`${what} in the place of $PAWL_OUT is a permanent failure, and nothing of it is kept`, bounded, async t => {
    const rig = commandRig(t)
    const { outcome, error } = await rig.script(make, { outputs })
    assert.deepEqual([outcome, error?.permanent, error?.step], ['failed', true, 'output'])
    assert.match(error!.message, /output folder was removed or replaced/)
    assert.deepEqual(rig.registered, [])
  })
}

test('a command may empty and make $PAWL_OUT anew', bounded, async t => {
  const rig = commandRig(t)
  const { outcome } = await rig.script('rm -r "$PAWL_OUT"; mkdir "$PAWL_OUT"; echo x > "$PAWL_OUT/x"', { outputs })
  assert.deepEqual([outcome, rig.uploaded.map(({ name }) => name)], ['succeeded', ['x']])
})

test('a name among the outputs that is not UTF-8 is a permanent failure that shows its bytes', bounded, async t => {
  const rig = commandRig(t)
  const { outcome, error } = await rig.script(`touch "$PAWL_OUT/$(printf 'a\\377b')"`, { outputs })
  assert.deepEqual([outcome, error?.permanent, error?.step], ['failed', true, 'output'])
  assert.match(error!.message, /a\\\\xffb.*not UTF-8/)
})

test('a link to a file inside is that file, and odd names are kept under URIs that say them', bounded, async t => {
  const rig = commandRig(t)
  const text = `cd "$PAWL_OUT"; echo one > real; ln -s real link; echo nl > "$(printf 'a\\nb')"; echo q > 'x?#%'`
  const { outcome } = await rig.script(text, { outputs })
  assert.equal(outcome, 'succeeded')
  assert.deepEqual(
    rig.uploaded.map(({ name, uri, size }) => [name, uri, size]),
    [
      ['a\nb', 'shelf://out/a%0Ab', 3],
      ['link', 'shelf://out/link', 4],
      ['real', 'shelf://out/real', 4],
      ['x?#%', 'shelf://out/x%3F%23%25', 2],
    ],
  )
})

test('a folder and files that may not be read or written are kept and removed all the same', bounded, async t => {
  const rig = commandRig(t)
  const text =
    'mkdir "$PAWL_OUT/d" deep; touch "$PAWL_OUT/d/f" deep/f; chmod 0555 "$PAWL_OUT/d"; chmod 0 deep/f; chmod 0111 deep'
  assert.equal((await rig.script(text, { outputs })).outcome, 'succeeded')
  assert.deepEqual([rig.uploaded.map(({ name }) => name), rig.leftovers()], [['d/f'], []])
})

test('an upload that fails is tried again within the attempt, and then fails the attempt', bounded, async t => {
  const files = shelf()
  const rig = commandRig(t, files)
  let puts = 0
  files.fault = method => {
    if (method === 'put' && ++puts < uploadTries.times) throw new Error('connection reset')
  }
  assert.equal((await rig.script('echo x > "$PAWL_OUT/x"', { outputs })).outcome, 'succeeded')
  assert.equal(puts, uploadTries.times)
  files.fault = method => {
    if (method === 'put') throw new Error('connection reset')
  }
  const { outcome, error } = await rig.script('echo x > "$PAWL_OUT/x"', { outputs })
  assert.deepEqual([outcome, error?.permanent, error?.step], ['failed', undefined, 'output'])
  assert.match(error!.message, /Uploading the output "x" failed: connection reset/)
})

for (const permanent of [true, false]) {
  test(`a file that another task makes too fails the task, for good: ${permanent}`, bounded, async t => {
    // A problem of the engine that this process's table need not contain.
    const conflict = new Problem(permanent ? 'ARTIFACT_CONFLICT' : 'ARTIFACT_CONTESTED', { other: 'task 7' })
    let asked = 0
    const port: ArtifactPort = {
      async register() {
        asked += 1
        throw conflict
      },
      uploaded: async () => assert.fail('nothing was sent'),
      async *ofStage() {},
    }
    const rig = commandRig(t, shelf(), { artifactsOf: () => port })
    const { outcome, error } = await rig.script('echo x > "$PAWL_OUT/x"', { outputs })
    assert.deepEqual([outcome, error?.permanent ?? false, error?.step], ['failed', permanent, 'output'])
    assert.match(error!.message, /task 7/)
    assert.deepEqual([asked, rig.files.kept.size], [1, 0])
  })
}

test('who lost the lease sends nothing more', bounded, async t => {
  const files = shelf()
  const rig = commandRig(t, files, { transfers: 1 })
  const doing = rig.start({ run: { command: ['sh', '-c', 'cd "$PAWL_OUT"; touch a b c'] }, outputs })
  const sent: string[] = []
  files.fault = (_, uri) => {
    sent.push(uri)
    doing.interrupt('lease-lost')
  }
  assert.equal((await doing.settled).outcome, 'released')
  assert.deepEqual([sent.length, rig.uploaded], [1, []])
})
