/**
 * Which stage of a job needs which. It never changes, except that stages are added behind the last; so of long jobs it
 * is kept, and whoever drives one need not read a thousand stages to find those that come next.
 */
import type { NeedsOfJob } from '../../kernel/advance.ts'
import { isFinal } from '../../kernel/lifecycle.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import type { StageRow } from '../../store/jobs/jobs.ts'

export interface DependencyGraph extends NeedsOfJob {
  /** The last stage that it knows of. */
  readonly lastId: string
  /**
   * These stages, those that need one of them, and all that those need. Of a stage with many needs, only
   * the one that it was last waiting for: while that is open, the others do not matter.
   */
  relatedStages(stageIds: readonly string[]): string[]
}

/** A shorter job is as quickly read whole. */
const minStages = 8
/** Up to this many needs of a stage, all are read. */
const fewNeeds = 20
/** Stages of all jobs together. */
const maxCachedStages = 100_000

const graphs = new Map<
  string,
  DependencyGraph & { readonly size: number; noteStates(stages: readonly StageRow[]): void }
>()
let cachedStages = 0

export function cachedGraph(jobId: string): DependencyGraph | undefined {
  return graphs.get(jobId)
}

/** Of all stages of a job. One that is being undone is read whole. */
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
    /** The last open need: tasks are claimed in the order of their stages, so it is likely to be open for longest. */
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
