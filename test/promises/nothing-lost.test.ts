/** "Nothing acknowledged is lost." The tests in test/faults kill processes for longer. */
import { test } from 'node:test'
import { killEmbedded } from '../faults/embedded-story.ts'
import { killFleet } from '../faults/fleet-story.ts'
import { needsServer } from '../harness/databases.ts'

const bounded = { timeout: 600_000 }

test(
  'servers and workers are killed: every acknowledged task ends once, as its handler said',
  { ...bounded, ...needsServer() },
  t => killFleet(t, 6),
)

test('an application on the embedded store is killed: nothing that was acknowledged is lost', bounded, t =>
  killEmbedded(t, 3),
)
