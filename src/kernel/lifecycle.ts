/**
 * Defines lifecycle tables and the questions that can be asked of them.
 *
 * The tables (task.ts, stage.ts, job.ts, artifact.ts) are the only place where states and moves are written down.
 * Types, SQL guards, docs and API enums are derived from them.
 */

export type Kind = 'open' | 'held' | 'final'
export type Outcome = 'good' | 'mixed' | 'bad'
export type Mover = 'worker' | 'operator' | 'engine' | 'babysitter'

export interface State {
  readonly kind: Kind
  /** Position within a round and, for tasks, within an epoch. It only increases. */
  readonly rank: number
  /** Only for final states. */
  readonly outcome?: Outcome
  /** Set on final states in which the work ran or timed out. Not set on cancelled and skipped. */
  readonly executed?: true
  /** Only a hold may be left for a state with a lower rank. */
  readonly hold?: true
  readonly means: string
}

export interface Move<S extends string> {
  readonly from: readonly NoInfer<S>[]
  readonly to: NoInfer<S> | readonly NoInfer<S>[]
  readonly by: readonly Mover[]
  readonly when: string
  /** The move starts the next round. This is the only way out of a final state. */
  readonly opensRound?: true
  /** The move starts the next epoch: a new lease. */
  readonly raisesEpoch?: true
}

export interface Lifecycle<S extends string = string, M extends string = string> {
  readonly entity: string
  readonly initial: readonly NoInfer<S>[]
  /** States that the statement that inserts a row may reach by a first move. The row then begins with two events. */
  readonly opening?: readonly NoInfer<S>[]
  readonly states: Readonly<Record<S, State>>
  readonly moves: Readonly<Record<M, Move<S>>>
  /** Two moves that one statement may make at once: from → via → to. */
  readonly compound?: readonly {
    readonly from: readonly NoInfer<S>[]
    readonly via: NoInfer<S>
    /** Default: any state that a worker can reach from `via`. */
    readonly to?: readonly NoInfer<S>[]
  }[]
}

export type StateOf<L> = L extends Lifecycle<infer S, string> ? S : never
export type MoveOf<L> = L extends Lifecycle<string, infer M> ? M : never

export interface Edge<S extends string = string, M extends string = string> {
  readonly move: M
  readonly from: S
  readonly to: S
  readonly opensRound: boolean
  readonly raisesEpoch: boolean
}

/** Checks the table when its module loads, so that an invalid one cannot be imported. */
export function defineLifecycle<const S extends string, const M extends string>(
  table: Lifecycle<S, M>,
): Lifecycle<S, M> {
  const check = (held: boolean, fault: string) => {
    if (!held) throw new Error(`${table.entity}: ${fault}`)
  }
  for (const state of [...table.initial, ...edgesOf(table).flatMap(({ from, to }) => [from, to])]) {
    check(table.states[state] !== undefined, `there is no state "${state}"`)
  }
  for (const state of table.opening ?? []) {
    const isOneMove = edgesOf(table).some(edge => edge.to === state && isFirstMove(table, edge))
    check(isOneMove, `a new row cannot open as "${state}"`)
  }
  const reached = reachable(table, table.initial)
  for (const state of statesOf(table)) {
    check(reached.has(state), `nothing leads to "${state}"`)
    const ends = [...reachable(table, [state])].some(end => isFinal(table, end))
    check(ends, `"${state}" never ends`)
    check(isFinal(table, state) === (table.states[state].outcome !== undefined), `"${state}": outcome iff final`)
  }
  for (const { move, from, to, opensRound, raisesEpoch } of edgesOf(table)) {
    const [before, after] = [table.states[from], table.states[to]]
    check(table.moves[move].by.length > 0, `nobody may "${move}"`)
    if (before.kind === 'final') check(opensRound, `"${from}" is final in its round, but "${move}" leaves it`)
    else check(!opensRound, `"${move}" opens a round from "${from}", which has not ended`)
    const forward = opensRound || raisesEpoch || after.rank > before.rank || before.hold === true
    check(forward, `"${move}" leads back from "${from}" to "${to}"`)
    check(!raisesEpoch || after.kind === 'held', `"${move}" raises the epoch without a lease`)
  }
  return Object.freeze(table)
}

export function statesOf<S extends string>(table: Lifecycle<S>, kind?: Kind): S[] {
  const all = Object.keys(table.states) as S[]
  return kind === undefined ? all : all.filter(state => table.states[state].kind === kind)
}

export function edgesOf<S extends string, M extends string>(table: Lifecycle<S, M>): Edge<S, M>[] {
  return (Object.keys(table.moves) as M[]).flatMap(move => {
    const { from, to, opensRound, raisesEpoch } = table.moves[move]
    const targets = typeof to === 'string' ? [to] : to
    return from.flatMap(source =>
      targets.map(target => ({
        move,
        from: source,
        to: target as S,
        opensRound: opensRound === true,
        raisesEpoch: raisesEpoch === true,
      })),
    )
  })
}

function isFirstMove<S extends string>(table: Lifecycle<S>, { from, opensRound, raisesEpoch }: Edge<S>): boolean {
  return (table.initial as readonly S[]).includes(from) && !opensRound && !raisesEpoch
}

/** The first moves that the statement that inserts a row may make. */
export function openingEdges<S extends string>(table: Lifecycle<S>): Edge<S>[] {
  const opening: readonly S[] = table.opening ?? []
  return edgesOf(table).filter(edge => opening.includes(edge.to) && isFirstMove(table, edge))
}

export interface CompoundEdge<S extends string = string> {
  readonly from: S
  readonly via: S
  readonly to: S
  readonly raisesEpoch: boolean
}

/** The pairs from → to that one statement may make as two moves, increasing `seq` by 2. */
export function compoundEdges<S extends string>(table: Lifecycle<S>): CompoundEdge<S>[] {
  const edges = edgesOf(table)
  return (table.compound ?? []).flatMap(({ from: sources, via, to }) => {
    const byWorker = edges.filter(edge => edge.from === via && table.moves[edge.move]!.by.includes('worker'))
    const targets = to ?? [...new Set(byWorker.map(edge => edge.to))]
    return sources.flatMap(from => {
      const raisesEpoch = edges.some(edge => edge.from === from && edge.to === via && edge.raisesEpoch)
      return targets.map(target => ({ from: from as S, via: via as S, to: target as S, raisesEpoch }))
    })
  })
}

export function movesFrom<S extends string, M extends string>(table: Lifecycle<S, M>, state: S): M[] {
  return [...new Set(edgesOf(table).flatMap(edge => (edge.from === state ? [edge.move] : [])))]
}

/** The moves that `mover` may request from `state`. The API returns them, and the dashboard offers them. */
export function movesOpenTo<S extends string, M extends string>(table: Lifecycle<S, M>, state: S, mover: Mover): M[] {
  return movesFrom(table, state).filter(move => table.moves[move].by.includes(mover))
}

export function mayMove<S extends string, M extends string>(table: Lifecycle<S, M>, state: S, move: M): boolean {
  return (table.moves[move].from as readonly S[]).includes(state)
}

export function isFinal<S extends string>(table: Lifecycle<S>, state: S): boolean {
  return table.states[state].kind === 'final'
}

/** Whether the state is a good end; for a task, succeeded or skipped. */
export function isGoodFinal<S extends string>(table: Lifecycle<S>, state: S): boolean {
  return isFinal(table, state) && table.states[state].outcome === 'good'
}

export function wasExecuted<S extends string>(table: Lifecycle<S>, state: S): boolean {
  return table.states[state].executed === true
}

function reachable<S extends string>(table: Lifecycle<S>, from: readonly S[]): Set<S> {
  const seen = new Set<S>(from)
  const edges = edgesOf(table)
  for (let before = -1; before !== seen.size; ) {
    before = seen.size
    for (const edge of edges) if (seen.has(edge.from)) seen.add(edge.to)
  }
  return seen
}
