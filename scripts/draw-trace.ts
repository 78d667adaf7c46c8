import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findRoot } from './job-schema-page.ts'
import { captureTrace, drawTrace, treeOf } from './trace-picture.ts'

writeFileSync(join(findRoot(import.meta.dirname), 'docs/trace.svg'), drawTrace(treeOf(await captureTrace())))
