/**
 * The datums of an input plan, one after the other, in an order that only the paths decide. So whoever stops can go on
 * behind any datum, and gets exactly the rest: of what was added meanwhile what comes behind it, of what was removed
 * nothing, and no datum twice. What is in memory does not grow with the number of datums.
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

/** The folder of a leaf, and how it and the folders in it are listed. */
export interface Lister {
  readonly base: string
  readonly list: FileStore['list']
}

export type ListerOf = (leaf: FilesInput) => Lister

interface From {
  readonly position: Position
  /** Whether the datum at the position is wanted too. */
  readonly inclusive: boolean
}

/** The plan must have passed `checkInputs`. `after`: a position that an earlier run of the same plan gave. */
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
    // It becomes a file of whoever runs the task.
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

/** So many datums of the inner side are kept; more are listed again for each of the outer side. */
const keptAtMost = 10_000

async function* cross(of: readonly InputPlan[], listerOf: ListerOf, from: From | undefined): AsyncGenerator<Datum> {
  const [first, ...others] = of as [InputPlan, ...InputPlan[]]
  const [head, ...tail] = (from?.position ?? []) as [Position?, ...Position[]]
  const isLast = others.length === 0
  // The outer datum that we stopped at is wanted again, for the rest of its combinations, if it is still there.
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
    // Nothing inside makes nothing at all.
    if (kept?.length === 0) return
  }
}

function isSame(one: Position, other: Position | undefined): boolean {
  return other !== undefined && JSON.stringify(one) === JSON.stringify(other)
}
