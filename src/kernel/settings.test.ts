import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultSettings, flattenSettings, resolveSettings } from './settings.ts'

test('settings are kept flat, and only those that were said', () => {
  const { attempts, losses, delaySeconds, factor, maxSeconds, jitter, ...others } = defaultSettings
  const retry = { attempts, losses, delaySeconds, factor, maxSeconds, jitter }
  assert.deepEqual(flattenSettings({ ...others, retry }), defaultSettings)
  const task = { type: 'a', payload: { leaseSeconds: 1 }, queue: undefined, priority: 1 }
  assert.equal(flattenSettings(task as object), undefined)
  assert.deepEqual(flattenSettings({ ...task, timeoutSeconds: null, retry: { attempts: 1 } } as object), {
    timeoutSeconds: null,
    attempts: 1,
  })
})

test('what a task says goes before what its type says, and nothing said is the default', () => {
  const settled = resolveSettings({ leaseSeconds: 40, softDeadlineSeconds: 60 }, { softDeadlineSeconds: null })
  assert.deepEqual(settled, { ...defaultSettings, leaseSeconds: 40, softDeadlineSeconds: null })
})
