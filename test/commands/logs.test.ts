/** The output of a command is kept with its task: limited, readable, and without secrets. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { logLimits } from '../../src/protocol/tasks/logs.ts'
import { commandRig, ownFolder } from '../harness/command-rig.ts'
import { shelf } from '../harness/shelf.ts'

const bounded = { timeout: 600_000 }

test('100 MB without a newline take no memory, and the log says how much is missing', bounded, async t => {
  const rig = commandRig(t)
  await rig.script('true')
  const before = process.memoryUsage().rss
  let peak = before
  const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 20)
  const { outcome, lines } = await rig.script('head -c 100000000 /dev/zero | tr "\\0" x; exit 0')
  clearInterval(watch)
  assert.equal(outcome, 'succeeded')
  assert.equal(lines.length, 1)
  assert.match(lines[0]!, /^x{2000}… \(99998000 more bytes\)$/)
  assert.ok(peak - before < 60_000_000, `it grew by ${peak - before} bytes`)
})

test(
  'of very many lines the first and the last are kept, with one that says what is missing between',
  bounded,
  async t => {
    const rig = commandRig(t)
    const { lines } = await rig.script('i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done')
    const at = lines.findIndex(line => line.includes('were dropped here'))
    assert.equal(lines[at], '19100 lines (200700 bytes) were dropped here.')
    assert.deepEqual(
      [lines[0], lines[at - 1], lines[at + 1], lines.at(-1)],
      ['line 0', 'line 799', 'line 19900', 'line 19999'],
    )
    assert.ok(lines.length <= logLimits.lines)
  },
)

test('many long lines are bounded by their bytes, and the last ones are still kept', bounded, async t => {
  const rig = commandRig(t)
  const { lines, error } = await rig.script(
    'i=0; while [ $i -lt 300 ]; do printf "%02000d %s\\n" 0 $i >&2; i=$((i+1)); done; echo the end >&2; exit 1',
  )
  assert.ok(lines.join('').length < logLimits.bytes)
  assert.equal(lines.at(-1), 'the end')
  assert.equal(lines.filter(line => line.includes('dropped')).length, 1)
  assert.match(error!.message, /the end$/)
  assert.ok(error!.message.length < 10_000)
})

test('bytes that are no text are shown as such, and a line says which stream it came from', bounded, async t => {
  const rig = commandRig(t)
  const doing = rig.start({ run: { command: ['sh', '-c', 'printf "a\\377b\\0c\\r\\n\\n"; printf "no newline" >&2'] } })
  await doing.settled
  assert.deepEqual(doing.lines().sort(), ['', 'a\uFFFDb\uFFFDc', 'no newline'])
})

test(
  'secrets come from files or the worker’s environment, and are hidden wherever the command shows them',
  bounded,
  async t => {
    const secretsFolder = ownFolder(t)
    mkdirSync(join(secretsFolder, 'db'))
    writeFileSync(join(secretsFolder, 'db', 'password'), 'hunter2-correct-horse\n')
    writeFileSync(join(secretsFolder, 'db', 'pem'), 'first line of it\nsecond line of it\n')
    process.env.API_TOKEN = 'tok-en-123'
    t.after(() => delete process.env.API_TOKEN)
    const rig = commandRig(t, shelf(), { secretsFolder })
    const secrets = {
      PASSWORD: { secret: 'db', key: 'password' },
      PEM: { secret: 'db', key: 'pem' },
      API_TOKEN: { secret: 'api', key: 'token' },
    }
    const text = `
    echo "$PASSWORD" | wc -c
    echo "p=$PASSWORD t=$API_TOKEN"; echo "$PEM"
    printf '%01995d%s%01000d\\n' 0 "$API_TOKEN" 0
    five="$API_TOKEN$API_TOKEN$API_TOKEN$API_TOKEN$API_TOKEN"
    printf '%s%s%01928d%s%01000d\\n' "$five" "$five" 0 "$API_TOKEN" 0
    echo "cannot use $API_TOKEN" >&2; exit 1`
    const doing = rig.start({ run: { command: ['sh', '-c', text], secrets } })
    const { error } = await doing.settled
    const lines = doing.lines()
    assert.deepEqual(lines.slice(0, 1), ['23'])
    const all = lines.join('\n') + error!.message
    for (const part of ['hunter2', 'tok-', 'first line', 'second line']) assert.ok(!all.includes(part), all)
    assert.deepEqual(lines.slice(1, 5), ['p=***', ' t=***', '***', '***'])
    assert.match(error!.message, /cannot use \*\*\*/)
  },
)

test('a command runs without a secret that is optional and that the worker does not have', bounded, async t => {
  const rig = commandRig(t)
  const secrets = { MISSING: { secret: 'vault', key: 'entry', optional: true } }
  const doing = rig.start({ run: { command: ['sh', '-c', 'test -z "$MISSING" && echo none'], secrets } })
  assert.equal((await doing.settled).outcome, 'succeeded')
  assert.deepEqual(doing.lines(), ['none'])
})

test('a secret that the worker does not have is a permanent failure that names it', bounded, async t => {
  const rig = commandRig(t, shelf(), { secretsFolder: ownFolder(t) })
  process.env.PAWL_KEY_OF_WORKER = 'private'
  t.after(() => delete process.env.PAWL_KEY_OF_WORKER)
  for (const name of ['MISSING', 'PAWL_KEY_OF_WORKER']) {
    const run = { command: ['true'], secrets: { [name]: { secret: 'vault', key: 'entry' } } }
    const { outcome, error } = await rig.run({ run })
    assert.deepEqual([outcome, error?.permanent, error?.step], ['failed', true, 'input'])
    assert.match(error!.message, new RegExp(`does not have the secret "vault/entry" for ${name}.*--secrets`))
  }
})
