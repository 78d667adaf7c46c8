/** Makes the context that the use cases share from the options of an engine and its open store. */

import { pathToFileURL } from 'node:url'
import { openFiles } from '../files/files.ts'
import { Problem } from '../kernel/problem.ts'
import { name as nameField } from '../schema/fields.ts'
import { specInvalid } from '../spec/faults.ts'
import type { JobSpec } from '../spec/job-spec.ts'
import type { Pipelines } from '../spec/named-job.ts'
import { parseJobSpec } from '../spec/parse-job-spec.ts'
import { readYaml } from '../spec/read-yaml.ts'
import { defaultBounds } from '../store/driver/postgres.ts'
import { dueByQueue } from '../store/tasks/claim.ts'
import { Activities } from './activities.ts'
import { makeFigures } from './admin/figures.ts'
import { keyWatch } from './admin/watch-keys.ts'
import { checkOptions } from './check.ts'
import type { Context } from './context.ts'
import { watchFeed } from './feed/feed-watch.ts'
import { Turns } from './jobs/condition-budget.ts'
import { asSql, type PawlOptions, type Store } from './open-store.ts'
import { claimHints } from './tasks/claim-hints.ts'
import { readEvents } from './tasks/read-tasks.ts'
import { noTypes } from './tasks/task-types.ts'
import { wakeBoard } from './wake.ts'
import { makeBell } from './wake-signal.ts'

const asFolder = (uri: string) => (uri.endsWith('/') ? uri : `${uri}/`)

export function makeContext(options: PawlOptions, store: Store, signal: AbortSignal): Context {
  const s3Buckets = options.s3Buckets ?? (options.fileRoots === undefined ? undefined : [])
  const wake = wakeBoard(store.messenger, queues => dueByQueue(store.sql, queues), signal)
  return {
    sql: store.sql,
    aside: store.aside ?? store.sql,
    wake,
    watchKey: keyWatch(store.sql, wake, signal),
    hints: claimHints(),
    feed: watchFeed(query => readEvents(store, query)),
    types: noTypes(),
    log: options.log ?? (() => {}),
    figures: makeFigures(store.connections, store.statements),
    activities: new Activities(),
    ready: () => store.readiness.check(store.probe ?? store.sql, store.messenger === undefined),
    maxPayloadBytes: options.maxPayloadBytes ?? 1_048_576,
    lockSeconds: options.bounds?.lockSeconds ?? defaultBounds.lockSeconds,
    files: openFiles({
      ...options.files,
      ...(options.fileRoots !== undefined && { roots: options.fileRoots }),
      ...(s3Buckets !== undefined && { buckets: s3Buckets }),
    }),
    fileRoots: options.fileRoots?.map(root => asFolder(pathToFileURL(root).href)),
    s3Buckets,
    podRules: options.podRules,
    pipelines: readPipelines(options.pipelines),
    fileBell: makeBell(),
    conditionTurns: new Turns(signal),
    oneConnection: store.messenger === undefined,
    knownLanes: new Set(),
    tellOnCommit: (sql, queues) => store.tellOnCommit(sql, queues),
    within: tx => (tx === undefined ? store.sql : asSql(tx, store.sql.schema)),
  }
}

/** Every pipeline is checked when the engine opens, not when the first job asks for it. */
function readPipelines(given: Readonly<Record<string, JobSpec | string>> = {}): Pipelines {
  return Object.fromEntries(Object.entries(given).map(([name, spec]) => [name, readPipeline(name, spec)]))
}

function readPipeline(name: string, given: JobSpec | string): JobSpec {
  checkOptions({ name }, { name: nameField }, 'pipelines')
  try {
    const spec = typeof given === 'string' ? written(given) : given
    parseJobSpec(spec)
    return spec
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    throw new Problem(error.code, { pipeline: name, ...error.details }, error)
  }
}

function written(text: string): JobSpec {
  const read = readYaml(text)
  if ('faults' in read) throw specInvalid(read.faults)
  return read.value as JobSpec
}
