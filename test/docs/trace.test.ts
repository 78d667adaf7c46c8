/** The picture of a trace in docs/monitoring.md shows what is traced. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { findRoot } from '../../scripts/job-schema-page.ts'
import { captureTrace, drawTrace, treeOf } from '../../scripts/trace-picture.ts'

const spansIn = (picture: string) =>
  [...picture.matchAll(/data-span="(.+)" data-kind="(.+)" data-depth="(.+)"/g)].map(match => match.slice(1))

test('the picture of a trace shows the spans that the same program makes today', { timeout: 120_000 }, async () => {
  const kept = spansIn(readFileSync(join(findRoot(import.meta.dirname), 'docs/trace.svg'), 'utf8'))
  assert.equal(kept.length, 6)
  assert.deepEqual(spansIn(drawTrace(treeOf(await captureTrace()))), kept, 'npm run pictures')
})
