import { test } from 'node:test'
import { needsServer } from '../harness/databases.ts'
import { workRandomGraphs } from './graph-story.ts'

test(
  'whatever becomes of the tasks of random graphs, roll-up is what follows from them, and every job ends',
  needsServer(),
  t => workRandomGraphs(t, 4),
)
