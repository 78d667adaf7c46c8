/**
 * Caches the dependencies between the stages of long jobs. They never change, except that stages are appended, so
 * advancing a job need not read a thousand stages to find the few that matter.
 */

import { isFinal } from '../../kernel/lifecycle.ts'
import type { NeedsOfJob } from '../../kernel/next-acts.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { type JobRow, type StageRow, takeTallies } from '../../store/jobs/jobs.ts'

export interface DependencyGraph extends NeedsOfJob {
  /** The last stage in the graph. */
  readonly lastId: string
  /**
   * Returns these stages, the stages that need them, and everything those need. For a stage with many needs, only the
   * one it is known to wait for: while that one is open, the others do not matter.
   */
  relatedStages(stageIds: readonly string[]): string[]
}

/** Shorter jobs are cheap to read completely. */
const minStages = 8
/** For a stage with at most this many needs, all of them are read. */
const fewNeeds = 20
/** Limit for all cached jobs together. */
const maxCachedStages = 100_000

const graphs = new Map<
  string,
  DependencyGraph & { readonly size: number; noteStates(stages: readonly StageRow[]): void }
>()
let cachedStages = 0

/** Expects all stages of the job. A job that is being compensated is always read completely. */
export function cacheGraph(jobId: string, stages: readonly StageRow[]): void {
  const before = graphs.get(jobId)
  const isLong = stages.length >= minStages && stages.every(({ kind }) => kind === 'work')
  if (!isLong) return
  if (before?.lastId === stages.at(-1)!.id) {
    before.noteStates(stages)
    return
  }
  if (cachedStages + stages.length > maxCachedStages) {
    graphs.clear()
    cachedStages = 0
  }
  cachedStages += stages.length - (graphs.get(jobId)?.size ?? 0)
  const made = buildGraph(stages)
  made.noteStates(stages)
  graphs.set(jobId, { ...made, size: stages.length })
}

function buildGraph(stages: readonly StageRow[]) {
  const byId = new Map(stages.map(({ id, name, plan }) => [id, { name, needs: plan.needs }]))
  const byName = new Map(stages.map(({ id, name, plan }) => [name, { id, needs: plan.needs }]))
  const lastOpenNeeds = new Map<string, string>()
  const users = new Map<string, string[]>()
  for (const { name, plan } of stages) {
    for (const need of plan.needs) {
      const known = users.get(need)
      if (known === undefined) users.set(need, [name])
      else known.push(name)
    }
  }
  const neededBy = (name: string) => users.get(name) ?? []
  return {
    lastId: stages.at(-1)!.id,
    neededBy,
    waitsFor: (name: string) => lastOpenNeeds.get(name),
    relatedStages(stageIds: readonly string[]) {
      const own = stageIds.flatMap(id => byId.get(id)?.name ?? [])
      const names = new Set(own)
      for (const name of new Set(own.flatMap(neededBy))) {
        const need = lastOpenNeeds.get(name)
        for (const other of need === undefined ? [name, ...byName.get(name)!.needs] : [need]) names.add(other)
      }
      return [...names].map(name => byName.get(name)!.id)
    },
    /**
     * Remembers the last open need of each stage. Tasks are claimed in the order of their stages, so the last one is
     * likely to stay open longest.
     */
    noteStates(now: readonly StageRow[]) {
      const open = new Set(now.flatMap(({ name, state }) => (isFinal(stageLifecycle, state) ? [] : [name])))
      lastOpenNeeds.clear()
      for (const { name, state, plan } of now) {
        if (state !== 'created' || plan.join === 'any' || plan.needs.length <= fewNeeds) continue
        const last = plan.needs.findLast(need => open.has(need))
        if (last !== undefined) lastOpenNeeds.set(name, last)
      }
    },
  }
}

/** A job to advance, and the stages whose tasks have moved. */
export interface JobToAdvance {
  readonly jobId: string
  readonly stageIds: readonly string[]
}

interface LoadedStages {
  readonly rows: Awaited<ReturnType<typeof takeTallies>>
  /** Set if only some stages were read. */
  readonly graph: DependencyGraph | undefined
  /** The graph does not know all stages. */
  readonly isStale: boolean
}

/** Reads stages of locked jobs, with one statement. Of a long job, only those that matter to the given stages. */
export async function loadStages(
  tx: Sql,
  jobs: readonly JobRow[],
  jobsToAdvance: readonly JobToAdvance[],
): Promise<ReadonlyMap<string, LoadedStages>> {
  const known = new Map(jobs.map(({ id, hasErrand }) => [id, hasErrand ? undefined : graphs.get(id)]))
  const stageIds = jobsToAdvance.flatMap(({ jobId, stageIds }) => known.get(jobId)?.relatedStages(stageIds) ?? [])
  const whole = [...known].flatMap(([id, graph]) => (graph === undefined ? [id] : []))
  const rows = await takeTallies(tx, { jobIds: [...known.keys()], whole, stageIds })
  const related = new Set(stageIds)
  const rowsByJob = new Map(jobs.map(({ id }) => [id, [] as typeof rows]))
  for (const row of rows) rowsByJob.get(row.jobId)!.push(row)
  return new Map(
    [...known].map(([id, graph]): [string, LoadedStages] => {
      const all = rowsByJob.get(id)!
      if (graph === undefined) return [id, { rows: all, graph, isStale: false }]
      // Stages are only ever appended, so the graph is complete if it knows the last one.
      const isStale = all.at(-1)?.id !== graph.lastId
      return [id, { rows: all.filter(row => related.has(row.id) || row.tally !== null), graph, isStale }]
    }),
  )
}
