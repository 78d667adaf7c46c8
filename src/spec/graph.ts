/** The stages of a spec as a dependency graph, and its cycles. Nothing here recurses, because chains can be long. */
import type { Fault } from './faults.ts'

/** The parts of a spec that the graph is built from. The spec may have faults elsewhere. */
export interface Node {
  readonly name: string | undefined
  readonly needs: readonly string[] | undefined
  readonly join: unknown
}

export const mostNeeds = 200_000

/** The needs as written; by default the stage before it in the list. */
export function needsOf(nodes: readonly Node[], index: number): readonly string[] {
  const before = nodes[index - 1]?.name
  return nodes[index]!.needs ?? (before === undefined ? [] : [before])
}

export interface Graph {
  readonly faults: readonly Fault[]
  /** Whether the named stage is an ancestor of the stage at `index`. Always false if the graph has faults. */
  isAbove(index: number, name: string): boolean
}

export function graphOf(nodes: readonly Node[]): Graph {
  const places = placesOf(nodes)
  const needs = nodes.map((_, index) => needsOf(nodes, index))
  const faults = [...faultsInNames(nodes, places), ...faultsInNeeds(nodes, needs, places)]
  if (faults.length > 0) return { faults, isAbove: () => false }

  const edges = needs.map(names => names.map(name => places.get(name)!))
  const { order, stuck } = inOrder(edges)
  if (stuck.size > 0) return { faults: [cycleFault(nodes, edges, stuck)], isAbove: () => false }
  const above = allAbove(edges, order)
  return { faults, isAbove: (index, name) => places.has(name) && above[index]!.has(places.get(name)!) }
}

/** The index at which each name occurs first. */
function placesOf(nodes: readonly Node[]): Map<string, number> {
  const places = new Map<string, number>()
  for (const [index, { name }] of nodes.entries()) {
    if (name !== undefined && !places.has(name)) places.set(name, index)
  }
  return places
}

function faultsInNames(nodes: readonly Node[], places: Map<string, number>): Fault[] {
  return nodes.flatMap(({ name }, index) => {
    const first = name === undefined ? index : places.get(name)
    return first === index
      ? []
      : [{ at: `stages[${index}].name`, why: `stages[${first}] already has the name '${name}'` }]
  })
}

function faultsInNeeds(
  nodes: readonly Node[],
  needs: readonly (readonly string[])[],
  places: Map<string, number>,
): Fault[] {
  const count = needs.reduce((sum, names) => sum + names.length, 0)
  if (count > mostNeeds) return [{ at: 'stages', why: `must have at most ${mostNeeds} needs in total, not ${count}` }]
  const known = [...places.keys()]
  return nodes.flatMap(({ name, join, needs: written }, index) => {
    const at = `stages[${index}].needs`
    const names = needs[index]!
    if (join === 'any' && names.length === 0) {
      return [{ at: `stages[${index}].join`, why: "'any' requires at least one need" }]
    }
    const first = new Map(names.map((need, place) => [need, place] as const).reverse())
    return names.flatMap((need, place): Fault[] => {
      if (first.get(need) !== place) return [{ at, why: `'${need}' is listed twice` }]
      if (need === name && written !== undefined) return [{ at, why: `'${need}' cannot need itself` }]
      return places.has(need) ? [] : [{ at, why: `no stage has the name '${need}'`, unknown: { word: need, known } }]
    })
  })
}

/** Sorts each stage after everything that it needs. The `stuck` stages are in a cycle or depend on one. */
function inOrder(edges: readonly (readonly number[])[]): { order: number[]; stuck: Set<number> } {
  const waitsFor = edges.map(needs => needs.length)
  const followers = edges.map((): number[] => [])
  for (const [index, needs] of edges.entries()) for (const need of needs) followers[need]!.push(index)
  const order = waitsFor.flatMap((count, index) => (count === 0 ? [index] : []))
  // The list grows during the loop.
  for (const index of order) for (const next of followers[index]!) if (--waitsFor[next]! === 0) order.push(next)
  const done = new Set(order)
  return { order, stuck: new Set(edges.flatMap((_, index) => (done.has(index) ? [] : [index]))) }
}

const mostShown = 12

/** Every stuck stage needs another stuck stage, so following the needs leads around a cycle. */
function cycleFault(nodes: readonly Node[], edges: readonly (readonly number[])[], stuck: Set<number>): Fault {
  const path: number[] = []
  const passed = new Map<number, number>()
  let here = Math.min(...stuck)
  while (!passed.has(here)) {
    passed.set(here, path.push(here) - 1)
    here = edges[here]!.find(need => stuck.has(need))!
  }
  const round = path.slice(passed.get(here)).reverse()
  const start = round.indexOf(Math.min(...round))
  const cycle = [...round.slice(start), ...round.slice(0, start)]
  const names = cycle.map(index => nodes[index]!.name)
  const shown = names.length > mostShown ? [...names.slice(0, mostShown), '…'] : names
  const byOrder = cycle.some(index => nodes[index]!.needs === undefined)
  const hint = byOrder ? '; by default, a stage needs the one before it; write needs: [] if it needs none' : ''
  return {
    at: `stages[${cycle[0]}].needs`,
    why: `the stages form a cycle: ${[...shown, names[0]].join(' → ')}${hint}`,
  }
}

interface Places {
  has(place: number): boolean
}

/** All ancestors of each stage, as bits: a chain of 10,000 stages then takes 12 MB instead of 50 million entries. */
function allAbove(edges: readonly (readonly number[])[], order: readonly number[]): Places[] {
  const words = Math.ceil(edges.length / 32)
  const bits = edges.map(() => new Uint32Array(words))
  for (const index of order) {
    const mine = bits[index]!
    for (const need of edges[index]!) {
      const theirs = bits[need]!
      for (let word = 0; word < words; word++) mine[word]! |= theirs[word]!
      mine[need >>> 5]! |= 1 << (need & 31)
    }
  }
  return bits.map(mine => ({ has: place => ((mine[place >>> 5]! >>> (place & 31)) & 1) === 1 }))
}
