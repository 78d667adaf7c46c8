import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { runConformance } from '../../src/conformance/run.ts'
import { serverUrl } from '../harness/databases.ts'
import { faults } from './programs/faults.ts'

/** Each planted fault, and the checks that must find it. `output` runs beside each, to show that nothing else is wrong. */
const foundBy: Record<string, readonly string[]> = {
  'ignores-cancel': ['soft-cancel'],
  'keeps-a-lost-lease': ['lost-lease'],
  'trusts-its-lease-for-ever': ['own-clock'],
  'never-beats': ['beats'],
  'reports-twice': ['one-report'],
  'keeps-reporting': ['one-report'],
  'forgets-a-lost-report': ['lost-answer'],
  'does-it-again-after-a-lost-report': ['lost-answer'],
  'claims-after-sigterm': ['shutdown'],
  'drops-what-it-holds': ['shutdown'],
  'drains-for-ever': ['drain'],
  'runs-careful-tasks-at-once': ['careful'],
  'ignores-a-refused-start': ['careful-lost'],
  'dies-of-an-unknown-type': ['unknown-type'],
  'dies-with-the-server': ['server-away'],
  'loses-what-errors-say': ['retry', 'give-up', 'retry-in'],
  'loses-the-output': ['output'],
  'has-no-session': ['session'],
  'asks-all-the-time': ['waits'],
  'hides-starts': ['reports-start'],
}
const onlyAdvised = ['has-no-session', 'asks-all-the-time', 'hides-starts']

const program = fileURLToPath(new URL('programs/fault-worker.js', import.meta.url))

async function reportOn(fault: string) {
  const only = [...new Set([...foundBy[fault]!, 'output'])]
  return runConformance({ worker: `node "${program}" ${fault}`, database: await serverUrl(18), only })
}

test('every fault that is planted is looked for', () => {
  assert.deepEqual(Object.keys(foundBy).sort(), Object.keys(faults).sort())
})

const names = Object.keys(foundBy)

// In two halves, so that neither takes long.
for (const part of [names.slice(0, 10), names.slice(10)]) {
  const title = `the suite finds what is wrong with a worker that ${part[0]!.replaceAll('-', ' ')}, and nine other faults`
  test(title, { concurrency: 3 }, async t => {
    await Promise.all(
      part.map(fault =>
        t.test(`a worker that ${fault.replaceAll('-', ' ')}`, async () => {
          const { checks, passed } = await reportOn(fault)
          const failed = checks.filter(check => !check.passed)
          assert.deepEqual(
            failed.map(({ id }) => id),
            foundBy[fault],
            JSON.stringify(checks, null, 2),
          )
          assert.equal(passed, onlyAdvised.includes(fault), 'what is only advised does not make a worker fail')
          t.diagnostic(`${fault}: ${failed.map(({ seen }) => seen).join('; ')}`)
        }),
      ),
    )
  })
}
