import { test } from 'node:test'
import { killFleet } from './fleet-story.ts'

test(
  'servers and workers may be killed at any moment for a minute: every task ends once, as its handler said',
  {
    timeout: 600_000,
  },
  t => killFleet(t, 60),
)
