/**
 * Lists the datums of an input plan one by one, in an order that depends only on the paths. A run can therefore
 * continue after any datum and gets exactly the rest: it sees additions behind that datum, misses what was removed, and
 * returns no datum twice. Memory use does not grow with the number of datums.
 */
import type { DatumInput, FilesInput, InputPlan, Position } from '../kernel/datum.ts'
import type { FileStore } from './file-store.ts'
import { findEntries, type Start } from './find-entries.ts'
import { readGlob } from './glob.ts'
import { checkLocalPath } from './names.ts'
import { joinUri } from './uri.ts'

export interface Datum {
  readonly inputs: readonly DatumInput[]
  readonly position: Position
}

/** The folder of a file input, and how it and its subfolders are listed. */
export interface Lister {
  readonly base: string
  readonly list: FileStore['list']
}

export type ListerOf = (leaf: FilesInput) => Lister

interface From {
  readonly position: Position
  /** Whether to include the datum at the position itself. */
  readonly inclusive: boolean
}

/** The plan must have passed `checkInputs`. `after`: a position returned by an earlier run of the same plan. */
export async function* datumsOf(plan: InputPlan, listerOf: ListerOf, after?: Position): AsyncGenerator<Datum> {
  yield* datumsFrom(plan, listerOf, after === undefined ? undefined : { position: after, inclusive: false })
}

async function* datumsFrom(plan: InputPlan, listerOf: ListerOf, from: From | undefined): AsyncGenerator<Datum> {
  if (plan.kind === 'files') yield* leaf(plan, listerOf(plan), from)
  else if (plan.kind === 'union') yield* union(plan.of, listerOf, from)
  else yield* cross(plan.of, listerOf, from)
}

async function* leaf({ name, glob }: FilesInput, lister: Lister, from: From | undefined): AsyncGenerator<Datum> {
  const start = from && ({ path: from.position as string, inclusive: from.inclusive } satisfies Start)
  for await (const entry of findEntries(readGlob(glob), lister, start)) {
    // The path becomes a file on the machine of the worker.
    checkLocalPath(entry.path)
    yield { inputs: [{ name, uri: joinUri(lister.base, entry.path), ...entry }], position: entry.path }
  }
}

async function* union(of: readonly InputPlan[], listerOf: ListerOf, from: From | undefined): AsyncGenerator<Datum> {
  const { branch: first, at } = (from?.position ?? { branch: 0 }) as { branch: number; at?: Position }
  for (const [branch, plan] of of.entries()) {
    if (branch < first) continue
    const inside = from && at !== undefined && branch === first ? { ...from, position: at } : undefined
    for await (const { inputs, position } of datumsFrom(plan, listerOf, inside))
      yield { inputs, position: { branch, at: position } }
  }
}

/** Maximum number of inner datums kept in memory. Larger inner sides are listed again for each outer datum. */
const keptAtMost = 10_000

async function* cross(of: readonly InputPlan[], listerOf: ListerOf, from: From | undefined): AsyncGenerator<Datum> {
  const [first, ...others] = of as [InputPlan, ...InputPlan[]]
  const [head, ...tail] = (from?.position ?? []) as [Position?, ...Position[]]
  const isLast = others.length === 0
  // The outer datum at which the last run stopped is needed again for its remaining combinations, if it still exists.
  const outside = from && head !== undefined ? { position: head, inclusive: from.inclusive || !isLast } : undefined
  let kept: Datum[] | undefined
  for await (const outer of datumsFrom(first, listerOf, outside)) {
    const inside = from && isSame(outer.position, head) ? { ...from, position: tail } : undefined
    const seen: Datum[] = []
    const inner = isLast ? [{ inputs: [], position: [] }] : (!inside && kept) || cross(others, listerOf, inside)
    for await (const datum of inner) {
      if (seen.length <= keptAtMost) seen.push(datum)
      const position = [outer.position, ...(datum.position as Position[])]
      yield { inputs: [...outer.inputs, ...datum.inputs], position }
    }
    if (!inside && seen.length <= keptAtMost) kept = seen
    // If the inner side is empty, there are no combinations at all.
    if (kept?.length === 0) return
  }
}

function isSame(one: Position, other: Position | undefined): boolean {
  return other !== undefined && JSON.stringify(one) === JSON.stringify(other)
}
