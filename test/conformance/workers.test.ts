/** The workers that we publish follow the protocol: in Python, in sh, and in TypeScript. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { printReport } from '../../src/conformance/check.ts'
import { runConformance } from '../../src/conformance/run.ts'
import { serverUrl } from '../harness/databases.ts'

const program = fileURLToPath(new URL('programs/worker.js', import.meta.url))
const examples = join(rootOf(import.meta.dirname), 'examples/workers')

test('the Python worker passes the conformance suite', { skip: without('python3') }, async () => {
  await conforms(`python3 "${examples}/worker.py"`, { database: await serverUrl(18) })
})

test('the worker in sh passes the conformance suite', { skip: without('curl', 'jq') }, async () => {
  await conforms(`sh "${examples}/worker.sh"`, { database: await serverUrl(15) })
})

test('the TypeScript worker passes the conformance suite, on the embedded store too', async () => {
  await conforms(`node "${program}"`)
})

async function conforms(worker: string, where: { database?: string } = {}): Promise<void> {
  const report = await runConformance({ worker, ...where })
  assert.ok(
    report.checks.every(({ passed }) => passed),
    printReport(report),
  )
}

/** The reason to skip: a missing program. False: nothing is missing. */
function without(...programs: readonly string[]): string | false {
  const missing = programs.filter(name => spawnSync(name, ['--version']).error !== undefined)
  return missing.length > 0 && `this machine has no ${missing.join(' and no ')}`
}

function rootOf(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : rootOf(dirname(folder))
}
