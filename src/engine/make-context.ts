/** Creates the context of the use cases from the engine's options and its open store. */

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
import { makeProcessMetrics } from './admin/process-metrics.ts'
import { makeKeyWatch } from './admin/watch-keys.ts'
import { checkOptions } from './check.ts'
import type { Context } from './context.ts'
import { watchFeed } from './feed/feed-watch.ts'
import { ConditionTurns } from './jobs/condition-budget.ts'
import { asSql, type PawlOptions, type Store } from './open-store.ts'
import { makeClaimHints } from './tasks/claim-hints.ts'
import { readEvents } from './tasks/read-tasks.ts'
import { noTypes } from './tasks/task-types.ts'
import { makeWake, makeWakeSignal } from './wake.ts'

const asFolder = (uri: string) => (uri.endsWith('/') ? uri : `${uri}/`)

export function makeContext(options: PawlOptions, store: Store, signal: AbortSignal): Context {
  const s3Buckets = options.s3Buckets ?? (options.fileRoots === undefined ? undefined : [])
  const wake = makeWake(store.messenger, queues => dueByQueue(store.sql, queues), signal)
  return {
    sql: store.sql,
    aside: store.aside ?? store.sql,
    wake,
    watchKey: makeKeyWatch(store.sql, wake, signal),
    claimHints: makeClaimHints(),
    feed: watchFeed(query => readEvents(store, query)),
    types: noTypes(),
    log: options.log ?? (() => {}),
    metrics: makeProcessMetrics(store.connections, store.statements),
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
    fileSignal: makeWakeSignal(),
    conditionTurns: new ConditionTurns(signal),
    oneConnection: store.messenger === undefined,
    knownLanes: new Set(),
    notifyOnCommit: (sql, queues) => store.notifyOnCommit(sql, queues),
    sqlFor: tx => (tx === undefined ? store.sql : asSql(tx, store.sql.schema)),
  }
}

/** Validates every pipeline when the engine opens, not when it is first used. */
function readPipelines(given: Readonly<Record<string, JobSpec | string>> = {}): Pipelines {
  return Object.fromEntries(Object.entries(given).map(([name, spec]) => [name, readPipeline(name, spec)]))
}

function readPipeline(name: string, given: JobSpec | string): JobSpec {
  checkOptions({ name }, { name: nameField }, 'pipelines')
  try {
    const spec = typeof given === 'string' ? parseText(given) : given
    parseJobSpec(spec)
    return spec
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    throw new Problem(error.code, { pipeline: name, ...error.details }, error)
  }
}

function parseText(text: string): JobSpec {
  const read = readYaml(text)
  if ('faults' in read) throw specInvalid(read.faults)
  return read.value as JobSpec
}
