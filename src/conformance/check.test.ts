import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CheckReport, printReport } from './check.ts'
import { runConformance } from './run.ts'

const kept: CheckReport = {
  id: 'beats',
  title: 'renews its leases',
  level: 'required',
  passed: true,
  seen: '5 heartbeats',
  output: '',
  seconds: 1,
}
const broken: CheckReport = { ...kept, id: 'drain', passed: false, seen: 'it was not given back', output: 'Traceback' }
const unwise: CheckReport = { ...kept, id: 'waits', level: 'advised', passed: false, seen: 'it asked 90 times' }

test('the report says what is wrong, what was seen, and what the worker last said', () => {
  const text = printReport({ worker: './mine', passed: false, checks: [kept, broken, unwise] })
  assert.match(text, /✓ renews its leases \[beats\]/)
  assert.match(text, /✗ .*\[drain\]\n +it was not given back\n +\| Traceback/)
  assert.match(text, /Advised[^✗]*! .*\[waits\]\n +it asked 90 times/)
  assert.match(text, /It does not conform: 1 of 2 required, 0 of 1 advised\./)
})

test('a check that does not exist is refused, and the nearest one is named', async () => {
  await assert.rejects(runConformance({ worker: 'true', only: ['beat'] }), /didYouMean: "beats"/)
  await assert.rejects(runConformance({ worker: '' }), /option: "worker"/)
})
