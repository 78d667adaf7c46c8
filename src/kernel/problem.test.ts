import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isWorthRetry, Problem, type ProblemCode, problems } from './problem.ts'

test('every problem has a status, says what it means, and what to do', () => {
  for (const [code, { status, means, hint }] of Object.entries(problems)) {
    assert.match(code, /^[A-Z]+(_[A-Z]+)*$/)
    assert.ok(Number.isInteger(status) && status >= 400 && status < 600, `${code} ${status}`)
    assert.match(means, /^[A-Z].*\.$/, code)
    assert.match(hint, /^[A-Z].*\.$/, code)
  }
})

test('what repeating cannot mend is the caller’s fault; what it can, the store’s', () => {
  const ours = Object.entries(problems).flatMap(([code, { status }]) => (status >= 500 ? [code] : []))
  assert.deepEqual(ours, [
    'SCHEMA_NEWER',
    'STORE_UNAVAILABLE',
    'STORE_BUSY',
    'STORE_FULL',
    'STORE_READ_ONLY',
    'STORE_CROWDED',
    'STORE_REFUSED',
    'SUBMIT_CUT_OFF',
    'STREAMS_FULL',
    'SPECS_WAIT',
    'SERVER_CLOSING',
    'SERVER_BLOCKED',
    'SERVER_UNREACHABLE',
    'KUBERNETES_UNREACHABLE',
    'FILES_UNAVAILABLE',
    'DISK_FULL',
  ])
})

test('a task is tried again when its files were out of reach or denied, and not for a bad name', () => {
  const codes: ProblemCode[] = ['FILES_UNAVAILABLE', 'FILES_DENIED', 'DISK_FULL', 'NAME_REFUSED', 'URI_INVALID']
  assert.deepEqual(
    codes.map(code => isWorthRetry(new Problem(code))),
    [true, true, true, false, false],
  )
})

test('the message of a problem alone is enough for a log: meaning, details, hint', () => {
  const cause = new Error('below')
  const problem = new Problem('MOVE_REFUSED', { state: 'queued', possible: ['cancel'] }, cause)
  const { means, hint } = problems.MOVE_REFUSED
  assert.equal(problem.message, `${means} (state: "queued", possible: ["cancel"]) ${hint}`)
  assert.equal(problem.name, 'Problem')
  assert.equal(problem.status, 409)
  assert.equal(problem.cause, cause)
  assert.deepEqual(problem.details, { state: 'queued', possible: ['cancel'] })
  assert.ok(problem instanceof Error)
})

test('a problem without details says just what it means and what to do', () => {
  for (const code of Object.keys(problems) as ProblemCode[]) {
    const problem = new Problem(code)
    assert.equal(problem.message, `${problems[code].means} ${problems[code].hint}`)
    assert.equal(problem.status, problems[code].status)
  }
})

test('a problem does not say back megabytes that it was sent, wherever they stand', () => {
  const long = 'x'.repeat(4_000_000)
  const { message, details } = new Problem('SPEC_INVALID', {
    issues: [{ at: long, why: `no stage has the name '${long}'` }],
  })
  assert.ok(message.length < 5000, `${message.length} characters`)
  assert.ok(JSON.stringify(details).length < 5000)
})

test('a refused move names the move, the state and the kind of object', () => {
  const message = (details: Record<string, unknown>) => new Problem('MOVE_REFUSED', details).message
  assert.match(message({ job: 'j', state: 'failed', move: 'cancel' }), /^Cannot cancel a failed job\. /)
  assert.match(message({ stage: 's', state: 'running', move: 'approve' }), /^Cannot approve a running stage\. /)
  assert.match(message({ id: 't', state: 'expired', move: 'deadLetter' }), /^Cannot dead-letter an expired task\. /)
  assert.match(message({ job: 'j', state: 'failed', move: 'stages' }), /^Cannot add stages to a failed job\. /)
  assert.match(message({ stage: 's', state: 'failed', move: 'tasks' }), /^Cannot add tasks to a failed stage\. /)
})
