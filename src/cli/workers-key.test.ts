import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fresh } from '../../test/harness/fresh.ts'
import { revokeStaleKeys, workersKeyName } from './runners.ts'

test('the key of a server that was killed ends when the next starts on its host; keys of others stay', async t => {
  const { engine } = await fresh(t)
  const { pid: gone } = spawnSync(process.execPath, ['-e', ''])
  const keep = [workersKeyName(undefined, process.ppid), workersKeyName('elsewhere', gone), 'workers of mine']
  const end = [workersKeyName(undefined, gone), workersKeyName()]
  for (const name of [...keep, ...end]) await engine.createKey({ name, role: 'worker' })
  await engine.createKey({ name: workersKeyName(undefined, gone), role: 'admin' })
  await revokeStaleKeys(engine)
  const valid = (await engine.keys()).filter(({ revokedAt }) => revokedAt === null).map(({ name }) => name)
  assert.deepEqual(valid.sort(), [...keep, workersKeyName(undefined, gone)].sort())
})
