import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commandType } from '../kernel/datum.ts'
import { defineTask } from './define-task.ts'
import { type WorkerOptions, workerSettings } from './options.ts'
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

test('a worker that runs commands claims none ahead of need, so that an idle worker gets them', () => {
  const tasks = [commandType, 'thumbnail'].map(type => defineTask({ type, handler: async () => {} }))
  assert.equal(workerSettings(tasks, { concurrency: 4 }, 'w').buffer, 0)
  assert.equal(workerSettings(tasks, { concurrency: 4, buffer: 2 }, 'w').buffer, 2)
  assert.equal(workerSettings(tasks.slice(1), { concurrency: 4 }, 'w').buffer, 4)
})
