import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WorkerOptions } from './options.ts'
import { startWorker } from './worker.ts'

const port = {
  sync: () => Promise.reject(new Error('a worker that was refused must not speak')),
  putTaskType: () => Promise.reject(new Error('a worker that was refused must not speak')),
}

test('a misspelt option of a worker is refused, with what was probably meant', () => {
  const options = { concurency: 5 } as WorkerOptions
  assert.throws(() => startWorker(port, [], options), {
    code: 'OPTION_UNKNOWN',
    details: { at: 'worker', option: 'concurency', didYouMean: 'concurrency' },
  })
})

test('a worker that could run nothing at once is refused', () => {
  assert.throws(() => startWorker(port, [], { concurrency: 0 }), { code: 'OPTION_INVALID' })
})
