/**
 * Which stage of a job needs which. It never changes, except that stages are added behind the last; so of long jobs it
 * is kept, and whoever drives one need not read a thousand stages to find those that come next.
 */
import type { StageRow } from '../store/jobs.ts'

export interface Outline {
  /** The last stage that it knows of. */
  readonly lastId: string
  /** Names of the stages that need this one. */
  neededBy(name: string): readonly string[]
  /** These stages, those that need one of them, and all that those need. */
  near(stageIds: readonly string[]): string[]
}

/** A shorter job is as quickly read whole. */
const longFrom = 8
/** Stages of all jobs together. */
const mostKept = 100_000

const outlines = new Map<string, Outline & { readonly size: number }>()
let kept = 0

export function outlineOf(jobId: string): Outline | undefined {
  return outlines.get(jobId)
}

/** Of all stages of a job. One that is being undone is read whole. */
export function keepOutline(jobId: string, stages: readonly StageRow[]): void {
  const before = outlines.get(jobId)
  const isLong = stages.length >= longFrom && stages.every(({ kind }) => kind === 'work')
  if (!isLong || before?.lastId === stages.at(-1)!.id) return
  if (kept + stages.length > mostKept) {
    outlines.clear()
    kept = 0
  }
  kept += stages.length - (outlines.get(jobId)?.size ?? 0)
  outlines.set(jobId, { ...outline(stages), size: stages.length })
}

function outline(stages: readonly StageRow[]): Outline {
  const byId = new Map(stages.map(({ id, name, plan }) => [id, { name, needs: plan.needs }]))
  const byName = new Map(stages.map(({ id, name, plan }) => [name, { id, needs: plan.needs }]))
  const users = new Map<string, string[]>()
  for (const { name, plan } of stages) {
    for (const need of plan.needs) users.set(need, [...(users.get(need) ?? []), name])
  }
  const neededBy = (name: string) => users.get(name) ?? []
  return {
    lastId: stages.at(-1)!.id,
    neededBy,
    near(stageIds) {
      const own = stageIds.flatMap(id => byId.get(id)?.name ?? [])
      const next = own.flatMap(neededBy)
      const names = new Set([...own, ...next, ...next.flatMap(name => byName.get(name)!.needs)])
      return [...names].map(name => byName.get(name)!.id)
    },
  }
}
