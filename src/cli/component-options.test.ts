import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resolveSettings } from '../config/resolve-settings.ts'
import { worker } from './commands/worker.ts'
import { fileLimitsOf, limitFlags } from './component-options.ts'
import { readArguments } from './parse.ts'

const resolved = (env: Record<string, string>) => resolveSettings({ flags: {}, env, file: undefined })

test('where folders are limited, so are buckets, unless a setting lists some', () => {
  const limits = (env: Record<string, string>, usual?: string[]) => fileLimitsOf(resolved(env), usual)
  assert.deepEqual(limits({}), { roots: undefined, buckets: undefined })
  assert.deepEqual(limits({}, []), { roots: [], buckets: [] })
  assert.deepEqual(limits({ PAWL_FILE_ROOTS: '/data' }), { roots: ['/data'], buckets: [] })
  assert.deepEqual(limits({ PAWL_S3_BUCKETS: '*' }, []), { roots: [], buckets: ['*'] })
  assert.deepEqual(limits({ PAWL_FILE_ROOTS: 'none', PAWL_S3_BUCKETS: 'a,b' }), { roots: [], buckets: ['a', 'b'] })
})

test('the workers that a server starts have the same limits as the server', () => {
  for (const limits of [
    { roots: undefined, buckets: undefined },
    { roots: [], buckets: [] },
    { roots: ['/data', '/more'], buckets: ['scans'] },
    { roots: undefined, buckets: ['*'] },
  ]) {
    const { settings } = readArguments(worker, ['--commands', ...limitFlags(limits)])
    assert.deepEqual(fileLimitsOf(resolveSettings({ flags: settings, env: {}, file: undefined })), limits)
  }
})
