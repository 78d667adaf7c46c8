/** The suite itself: programs that are not workers, and processes that must not be left behind. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { runConformance } from '../../src/conformance/run.ts'
import { serverUrl } from '../harness/databases.ts'
import { eventually } from '../harness/eventually.ts'

test('a command that cannot be started fails, and the report has what the shell said', async () => {
  const worker = '/nowhere/there-is-no-such-worker'
  const { passed, checks } = await runConformance({ worker, database: await serverUrl(18), only: ['output'] })
  assert.equal(passed, false)
  assert.match(checks[0]!.seen, /the worker ended by itself \(exit code 127\)/)
  assert.match(checks[0]!.output, /not found/)
})

test('a program that hangs is ended when its checks are over, with all that it has started', async t => {
  const { worker, childPid } = hangingProgram(t)
  const { passed } = await runConformance({ worker, database: await serverUrl(18), only: ['output'] })
  assert.equal(passed, false)
  await eventually('its child is gone', () => !isAlive(childPid()))
})

test('a suite that is stopped ends its workers and says that it was stopped', async t => {
  const { worker, childPid } = hangingProgram(t)
  const stop = new AbortController()
  const only = ['beats', 'output', 'drain']
  const running = runConformance({ worker, database: await serverUrl(18), only, concurrency: 1, signal: stop.signal })
  await eventually('the program runs', () => isAlive(childPid()))
  stop.abort()
  const { passed, checks } = await running
  assert.equal(passed, false)
  assert.deepEqual(
    checks.map(({ seen }) => seen),
    only.map(() => 'the suite was stopped'),
  )
  await eventually('its child is gone', () => !isAlive(childPid()))
})

/** A program that sends nothing, ignores SIGTERM, and has a child process. */
function hangingProgram(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-hanging-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'pid')
  return {
    worker: `sh -c 'trap "" TERM; sleep 600 & echo $! >"${file}"; wait'`,
    childPid: () => Number(textOf(file)),
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return '0'
  }
}

/** A zombie process, which has ended but was not reaped, is not alive. */
function isAlive(pid: number): boolean {
  if (pid === 0) return false
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
  return stdout.trim() !== '' && !stdout.startsWith('Z')
}
