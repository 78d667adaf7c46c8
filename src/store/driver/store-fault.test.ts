import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Problem, willPass } from '../../kernel/problem.ts'
import { asProblem, type StoreFault, storeFault } from './store-fault.ts'

const withCode = (code: string) => Object.assign(new Error('no'), { code })

/** At least one code of every class that PostgreSQL documents and that may occur. */
const cases: Readonly<Record<StoreFault, readonly string[]>> = {
  data: ['22001', '22021', '22P02', '22P05', '23502', '23505', '23514', '54000', 'P0001'],
  conflict: ['40001', '40P01'],
  locked: ['55P03'],
  cancelled: ['57014'],
  full: ['53100'],
  'read-only': ['25006'],
  crowded: ['53300'],
  refused: ['28000', '28P01', '3D000', '42501'],
  away: [
    '08000',
    '08006',
    '08P01',
    '25P03',
    '25P04',
    '26000',
    '40003',
    '53000',
    '53200',
    '53400',
    '55006',
    '57P01',
  ].concat([
    '57P02',
    '57P03',
    '57P04',
    '57P05',
    '58030',
    'ECONNRESET',
    'ECONNREFUSED',
    'EPIPE',
    'ETIMEDOUT',
    'EAI_AGAIN',
  ]),
  bug: ['0A000', '21000', '25001', '42601', '42P01', '42703', 'XX000', 'XX001', 'ERR_INVALID_ARG_TYPE'],
}

for (const [fault, codes] of Object.entries(cases)) {
  test(`errors of the store are told apart by their SQLSTATE: ${fault}`, () => {
    for (const code of codes) assert.equal(storeFault(withCode(code)), fault, code)
  })
}

test('an error of the store that passes is a problem with a name, which workers and clients repeat', () => {
  const named = { '55P03': 'STORE_BUSY', '57014': 'STORE_BUSY', '53100': 'STORE_FULL', '25006': 'STORE_READ_ONLY' }
  const more = { '53300': 'STORE_CROWDED', '28P01': 'STORE_REFUSED', '57P01': 'STORE_UNAVAILABLE' }
  for (const [code, name] of Object.entries({ ...named, ...more })) {
    const problem = asProblem(withCode(code)) as Problem
    assert.deepEqual([problem.code, problem.status, willPass(problem)], [name, 503, true], code)
  }
})

test('an error of a statement stays as it is', () => {
  for (const code of ['23505', '40P01', '42601']) {
    const error = withCode(code)
    assert.equal(asProblem(error), error)
  }
})

test('what node-postgres says without a code is a broken connection', () => {
  for (const message of ['Connection terminated unexpectedly', 'timeout exceeded when trying to connect']) {
    assert.equal(storeFault(new Error(message)), 'away')
  }
})
