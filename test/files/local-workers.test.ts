import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { localPool } from '../../src/runners/local.ts'
import { eventually } from '../harness/eventually.ts'

/** A pool of processes that do nothing until their input ends. */
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
  assert.deepEqual([on('a').length, on('b').length], [3, 1])
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
  await sleep(0)
  assert.deepEqual(workers(), [])
})
