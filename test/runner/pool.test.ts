import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Run, type RunResult, runPool } from './pool.ts'
import { isGood, titleList, totalLine } from './summary.ts'

const build = fileURLToPath(new URL('../..', import.meta.url))
const bounded = { timeout: 600_000 }

const program = (name: string): Run => ({ file: `test/runner/programs/${name}`, database: 'postgres 18' })

async function runFiles(names: readonly string[], options: { fileSeconds?: number; exitSeconds?: number } = {}) {
  const ended: RunResult[] = []
  await runPool(names.map(program), {
    build,
    processes: 1,
    sourceMaps: false,
    fileSeconds: 60,
    ...options,
    onEnd(run) {
      ended.push(run)
      return []
    },
  })
  return ended
}

test('each test is reported once with its outcome and the titles around it', bounded, async () => {
  const [run] = await runFiles(['mixed'])
  assert.deepEqual(
    run!.results.map(({ path, outcome }) => `${path.join(' › ')}: ${outcome}`),
    [
      'it runs on postgres 18: passed',
      'it is skipped: skipped',
      'it fails: failed',
      'a suite › it passes: passed',
      'a suite › it has a test inside › which fails: failed',
    ],
  )
  assert.match(run!.results[2]!.error!, /1 !== 2/)
  assert.deepEqual([run!.usesDatabase, isGood(run!)], [true, false])
  assert.equal(totalLine([run!]), '2 passed, 2 failed, 1 skipped')
  assert.match(titleList([run!]), /^test\/runner\/programs\/mixed: a suite › it has a test inside › which fails$/m)
})

test('a file that hangs or kills its process fails alone: the files after it run', bounded, async () => {
  const runs = await runFiles(['hangs', 'crashes', 'passes'], { fileSeconds: 5 })
  assert.deepEqual(
    runs.map(({ results }) => results.map(({ path, outcome }) => `${path.join(' › ')}: ${outcome}`)),
    [
      ['it ends: passed', 'the file did not end within 5 s: failed'],
      ['the test process exited with SIGKILL: failed'],
      ['it passes: passed'],
    ],
  )
})

test('a file that leaves something running is a failure, though its tests passed', bounded, async () => {
  const runs = await runFiles(['leaves-a-timer'], { exitSeconds: 3 })
  assert.deepEqual(runs.map(isGood), [true, false])
  assert.match(runs[1]!.results[0]!.path[0]!, /did not end by itself after test\/runner\/programs\/leaves-a-timer/)
})

test('a file can be followed by the same file on another database, in the same process', bounded, async () => {
  const ended: RunResult[] = []
  await runPool([program('mixed')], {
    build,
    processes: 1,
    sourceMaps: false,
    fileSeconds: 60,
    onEnd(run) {
      ended.push(run)
      return ended.length === 1 ? [{ ...run, database: 'embedded' }] : []
    },
  })
  assert.deepEqual(
    ended.map(({ results }) => results[0]!.path[0]),
    ['it runs on postgres 18', 'it runs on embedded'],
  )
})
