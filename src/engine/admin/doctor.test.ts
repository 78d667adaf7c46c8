import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import { examineOnce } from './doctor.ts'

test('concurrent examinations share one, and a later request starts a new one', async t => {
  const { engine } = await fresh(t)
  const asked = Array.from({ length: 20 }, () => examineOnce(engine.context))
  assert.equal(new Set(asked).size, 1)
  const [first, ...others] = await Promise.all(asked)
  assert.ok(others.every(other => other === first))
  assert.notEqual(await examineOnce(engine.context), first)
})
