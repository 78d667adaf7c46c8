/**
 * Lists the datums of an input plan one by one, in an order that depends only on the paths. A run can therefore
 * continue after any datum and gets exactly the rest: it sees additions behind that datum, misses what was removed, and
 * returns no datum twice. Memory use does not grow with the number of datums.
 */
import type { DatumInput, FilesInput, InputPlan, Position } from '../kernel/datum.ts'
import { Problem } from '../kernel/problem.ts'
import type { Entry, FileStore, ListAsk } from './file-store.ts'
import { type Glob, globError, readGlob } from './glob.ts'
import { byBytes, checkFolder, checkLocalPath, joinUri } from './uri.ts'

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

/** Where to begin: at a position, or right after it. */
interface From<At = Position> {
  readonly position: At
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
  for await (const entry of findEntries(readGlob(glob), lister, from as Start | undefined)) {
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

/** The position of a file is its path. */
type Start = From<string>

/**
 * Finds the entries that a glob matches, in byte order of their paths. It lists only folders that can contain matches.
 */
async function* findEntries(glob: Glob, folder: Lister, start: Start | undefined): AsyncGenerator<Entry> {
  if (glob.levels.length > 0 || glob.rest !== undefined) yield* find(glob, folder, '', 0, start)
  else if (start === undefined || start.inclusive) yield { path: '' }
}

/** `start` is relative to the folder at `path`. */
async function* find(
  glob: Glob,
  folder: Lister,
  path: string,
  depth: number,
  start: Start | undefined,
): AsyncGenerator<Entry> {
  const { levels, rest } = glob
  const level = levels[depth]
  const matches =
    level === undefined ? rest : depth === levels.length - 1 && rest === undefined && byName(level.matches)
  if (matches) {
    const ask = { deep: level === undefined, ...asking(start) }
    for await (const entry of entriesIn(folder, path, ask)) {
      if (isAhead(entry.path, start) && matches(entry.path)) yield { ...entry, path: path + entry.path }
    }
    return
  }
  const inside = (name: string, from?: Start) => find(glob, folder, path + name, depth + 1, from)
  const head = start?.position.slice(0, start.position.indexOf('/') + 1) ?? ''
  const name = head.slice(0, -1)
  if (start !== undefined && head !== '' && level?.matches(name)) {
    // The folder in which the last run stopped comes first, from where it stopped.
    const left = start.position.slice(head.length)
    yield* inside(head, left === '' ? undefined : { ...start, position: left })
  }
  if (level?.only !== undefined) {
    const only = `${level.only}/`
    if (start === undefined || byBytes(only, head || start.position) > 0) yield* inside(only)
    return
  }
  const after = head || start?.position
  for await (const entry of entriesIn(folder, path, after ? { after } : {})) {
    if (entry.path.endsWith('/') && byName(level!.matches)(entry.path)) yield* inside(entry.path)
  }
}

function byName(matches: (name: string) => boolean): (path: string) => boolean {
  return path => matches(path.endsWith('/') ? path.slice(0, -1) : path)
}

function isAhead(path: string, start: Start | undefined): boolean {
  if (start === undefined) return true
  const order = byBytes(path, start.position)
  return order > 0 || (order === 0 && start.inclusive)
}

/** To include the path itself, the listing begins one character before its end. Earlier entries are skipped. */
function asking(start: Start | undefined): ListAsk {
  if (start === undefined) return {}
  const after = start.inclusive ? [...start.position].slice(0, -1).join('') : start.position
  return after === '' ? {} : { after }
}

/**
 * A subfolder that is missing, or has disappeared since it was listed, is empty. But if the base folder is gone too (an
 * unmounted disk, a deleted bucket), this must not be taken for the end of the listing.
 */
async function* entriesIn({ base, list }: Lister, path: string, ask: ListAsk): AsyncGenerator<Entry> {
  try {
    for await (const page of list(joinUri(base, path), ask)) yield* page
  } catch (error) {
    if (path === '' || !(error instanceof Problem) || error.code !== 'FILE_NOT_FOUND') throw error
    for await (const _page of list(base)) break
  }
}

const deepest = 20

/** Rejects an invalid input plan before anything is listed. */
export function checkInputs(plan: InputPlan): void {
  namesIn(plan, 'input', 0)
}

/** The input names that a datum of this plan may have. */
function namesIn(plan: InputPlan, at: string, depth: number): ReadonlySet<string> {
  if (depth > deepest) throw new Problem('INPUTS_INVALID', { at, why: `it is nested more than ${deepest} levels deep` })
  if (plan.kind === 'files') return new Set([checkFiles(plan, at)])
  if (plan.of.length === 0) throw new Problem('INPUTS_INVALID', { at, why: `a ${plan.kind} needs at least one input` })
  const names = new Set<string>()
  for (const [index, part] of plan.of.entries()) {
    for (const name of namesIn(part, `${at}.${plan.kind}[${index}]`, depth + 1)) {
      // A datum of a union comes from one part. A datum of a cross has inputs from all parts, so names must differ.
      if (plan.kind === 'cross' && names.has(name))
        throw new Problem('INPUTS_INVALID', { at, why: `two inputs of a cross have the same name "${name}"` })
      names.add(name)
    }
  }
  return names
}

function checkFiles({ name, glob, from }: FilesInput, at: string): string {
  const refuse = (why: string): never => {
    throw new Problem('INPUTS_INVALID', { at, why })
  }
  if (!/^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,99}$/.test(name))
    refuse(`the name ${JSON.stringify(name)} must have up to 100 letters, digits, _ . and -`)
  if (name === 'out') refuse('the name "out" is reserved for the outputs')
  const error = globError(glob)
  if (error !== undefined) refuse(`the glob ${JSON.stringify(glob)} is invalid: ${error}`)
  if ('uri' in from) checkFolder(from.uri)
  return name
}
