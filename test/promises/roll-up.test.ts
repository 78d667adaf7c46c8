/** "Stages and jobs follow from their tasks." test/model runs more and larger jobs. */
import { test } from 'node:test'
import { needsServer } from '../harness/databases.ts'
import { workRandomGraphs } from '../model/graph-story.ts'

test(
  'recomputing the states of stages and jobs from their tasks finds no difference, and every job ends',
  needsServer(),
  t => workRandomGraphs(t, 1),
)
