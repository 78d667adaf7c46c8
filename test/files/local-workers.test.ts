import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { localPool } from '../../src/runners/local.ts'
import { eventually } from '../harness/eventually.ts'

/** A pool of processes that do nothing until their input closes. */
function pool(t: TestContext, most = 10) {
  const lines: string[] = []
  const made = localPool({
    command: [process.execPath, '-e', 'process.stdin.resume(); process.on("SIGTERM", () => process.exit(0))', '--'],
    most,
    log: word => lines.push(word),
    restartSeconds: 0,
  })
  t.after(() => made.close())
  const on = (queue: string) => made.workers().filter(worker => worker.queue === queue)
  return { ...made, lines, on }
}

test('there are as many workers on each queue as there is work for, and no more in all than allowed', async t => {
  const { resize, on, workers } = pool(t, 4)
  resize(new Map([['a', 3]]))
  assert.equal(on('a').length, 3)
  resize(
    new Map([
      ['a', 3],
      ['b', 3],
    ]),
  )
  await eventually('one has made room', () => on('a').length === 2)
  assert.equal(on('b').length, 1)
  resize(new Map([['b', 2]]))
  await eventually('those without work have gone', () => on('a').length === 0)
  assert.equal(workers().length, 2)
})

test('a worker that is killed is replaced', async t => {
  const { resize, on, lines } = pool(t)
  resize(new Map([['a', 1]]))
  const [first] = on('a')
  process.kill(first!.pid, 'SIGKILL')
  await eventually('it is gone', () => on('a').length === 0)
  resize(new Map([['a', 1]]))
  assert.notEqual(on('a')[0]!.pid, first!.pid)
  assert.deepEqual(lines, ['worker.died'])
})

test('when the pool is closed no process of it is left', async t => {
  const { resize, workers, close } = pool(t)
  resize(new Map([['a', 2]]))
  const pids = workers().map(({ pid }) => pid)
  await close()
  for (const pid of pids) assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
  resize(new Map([['a', 2]]))
  assert.deepEqual(workers(), [])
})

/** A pool of processes that are busy until told to end, and that end at once if they are given no time. */
function busyPool(t: TestContext, most: number, closeSeconds = 30) {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-pool-'))
  const program = `
    const note = what => require('node:fs').writeFileSync(process.argv[1] + '/' + process.pid + what, '')
    const seconds = Number(process.argv[process.argv.indexOf('--drain-seconds') + 1])
    let isLeaving = false
    process.on('SIGTERM', () => {
      if (!(seconds > 3600)) process.exit(1)
      isLeaving = true
      note('.leaving')
    })
    process.on('SIGUSR2', () => isLeaving && process.exit(0))
    setInterval(() => {}, 1000)
    note('.busy')`
  const made = localPool({
    command: [process.execPath, '-e', program, '--', folder],
    most,
    closeSeconds,
    log: () => {},
  })
  t.after(async () => {
    for (const { pid } of made.workers()) process.kill(pid, 'SIGKILL')
    await made.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const is = (what: string) =>
    eventually(what, () => made.workers().every(({ pid }) => existsSync(join(folder, pid + what))))
  return { ...made, is, on: (queue: string) => made.workers().filter(worker => worker.queue === queue) }
}

test('a busy worker that is not wanted any more finishes its command, has its place until then, and ends', async t => {
  const { resize, on, is } = busyPool(t, 1)
  resize(new Map([['a', 1]]))
  await is('.busy')
  const { pid } = on('a')[0]!
  resize(new Map([['b', 1]]))
  await is('.leaving')
  resize(new Map([['b', 1]]))
  assert.deepEqual([on('a').map(worker => worker.pid), on('b')], [[pid], []])
  process.kill(pid, 'SIGUSR2')
  await eventually('it has ended', () => on('a').length === 0)
  resize(new Map([['b', 1]]))
  assert.equal(on('b').length, 1)
})

test('a worker that does not end when the pool is closed is killed', async t => {
  const { resize, workers, is, close } = busyPool(t, 2, 0.1)
  resize(new Map([['a', 2]]))
  await is('.busy')
  const pids = workers().map(({ pid }) => pid)
  await close()
  for (const pid of pids) assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
})

test('no queue with work has no worker while another has more than one', async t => {
  const { resize, on } = pool(t, 4)
  resize(new Map([['a', 9]]))
  assert.equal(on('a').length, 4)
  const wanted = new Map(Object.entries({ a: 9, b: 3, c: 1 }))
  await eventually('each has its share', () => {
    resize(wanted)
    return on('a').length === 2 && on('b').length === 1 && on('c').length === 1
  })
})
