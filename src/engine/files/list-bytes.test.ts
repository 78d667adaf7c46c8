/** Answers that list files are bounded by their bytes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'

/** Five thousand of these are 40 MB. */
const uriOf = (n: number) => `s3://bucket/${'f'.repeat(7900)}/${n}`

test('the answer to a report of very many files ends before it is too large, and all of them are listed page by page', async t => {
  const { engine, sync } = await fresh(t)
  const { id } = await engine.enqueue('t', null)
  const { claimed } = await sync({ worker: 'w', queues: ['t'], claim: 1 })
  const { epoch } = claimed[0]!
  const artifacts = Array.from({ length: 5000 }, (_, n) => ({
    name: `f${n}`,
    uri: uriOf(n),
    state: 'registered' as const,
  }))
  const listed = await engine.reportArtifacts(id, epoch, { artifacts })
  assert.ok(listed.length > 1000 && listed.length < artifacts.length, `${listed.length} files`)
  let all = 0
  for (let cursor: string | undefined; ; ) {
    const { items, next } = await engine.taskArtifacts(id, { limit: 1000, ...(cursor !== undefined && { cursor }) })
    all += items.length
    if (next === null) break
    cursor = next
  }
  assert.equal(all, artifacts.length)
})

test('the lineage of a file names its makers, and no more of their many outputs than an answer can hold', async t => {
  const { engine, sync } = await fresh(t)
  const { id } = await engine.enqueue('t', null)
  const { claimed } = await sync({ worker: 'w', queues: ['t'], claim: 1 })
  const { epoch } = claimed[0]!
  const artifacts = Array.from({ length: 3000 }, (_, n) => ({
    name: `f${n}`,
    uri: uriOf(n),
    state: 'uploaded' as const,
  }))
  const registered = artifacts.map(file => ({ ...file, state: 'registered' as const }))
  await engine.reportArtifacts(id, epoch, { artifacts: registered })
  await engine.reportArtifacts(id, epoch, {
    artifacts: artifacts.map(file => ({ ...file, size: 1, sha256: 'a'.repeat(64) })),
  })
  await engine.succeed(id, epoch)
  const { madeBy } = await engine.lineage({ uri: uriOf(0) })
  assert.deepEqual(
    madeBy.map(({ taskId }) => taskId),
    [id],
  )
  const { length } = madeBy[0]!.outputs
  assert.ok(length > 1000 && length < artifacts.length, `${length} files`)
})
