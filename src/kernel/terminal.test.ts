import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as client from '../client/index.ts'
import * as pawl from '../index.ts'
import { isSuccessfulTerminal, isTerminal, terminalStates, wasExecuted } from './lifecycles.ts'

test('users can ask whether a task has ended, whether it ended well, and whether it was executed', () => {
  assert.deepEqual(terminalStates(), ['succeeded', 'skipped', 'failed', 'cancelled', 'expired', 'dead_lettered'])
  for (const state of terminalStates()) assert.ok(isTerminal(state), state)
  for (const state of ['blocked', 'queued', 'assigned', 'running', 'retrying'] as const) assert.ok(!isTerminal(state))
  assert.deepEqual(
    terminalStates().filter(state => isSuccessfulTerminal(state)),
    ['succeeded', 'skipped'],
  )
  assert.deepEqual(
    terminalStates().filter(state => wasExecuted(state)),
    ['succeeded', 'failed', 'expired', 'dead_lettered'],
    'only what was skipped or cancelled was not',
  )
})

test('the same can be asked of jobs, stages and files', () => {
  assert.deepEqual(terminalStates('job'), ['succeeded', 'partial', 'failed', 'cancelled', 'expired'])
  assert.ok(isTerminal('partial', 'job') && !isSuccessfulTerminal('partial', 'job') && wasExecuted('partial', 'job'))
  assert.ok(wasExecuted('expired', 'job') && !wasExecuted('cancelled', 'job'))
  assert.ok(isSuccessfulTerminal('skipped', 'stage') && !wasExecuted('skipped', 'stage'))
  assert.ok(isSuccessfulTerminal('stored', 'artifact') && !isTerminal('uploaded', 'artifact'))
})

test('a state that does not exist is refused, with those that do', () => {
  assert.throws(() => isTerminal('COMPLETED' as never), { code: 'OPTION_INVALID', message: /succeeded/ })
  assert.throws(() => isTerminal('toString' as never), { code: 'OPTION_INVALID' })
  assert.throws(() => terminalStates('dag' as never), { code: 'OPTION_INVALID', message: /artifact/ })
})

test('they are part of pawl and of pawl/client', () => {
  for (const names of [pawl, client]) {
    assert.deepEqual(
      [names.isTerminal, names.isSuccessfulTerminal, names.terminalStates, names.wasExecuted],
      [isTerminal, isSuccessfulTerminal, terminalStates, wasExecuted],
    )
  }
})
