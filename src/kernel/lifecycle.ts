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
  readonly states: Readonly<Record<S, State>>
  readonly moves: Readonly<Record<M, Move<S>>>
  /** Two moves that one statement may make at once: from → via → any state that a worker can reach from `via`. */
  readonly compound?: { readonly from: NoInfer<S>; readonly via: NoInfer<S> }
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

/** The pairs from → to that one statement may make as two moves, increasing `seq` by 2. */
export function compoundEdges<S extends string>(table: Lifecycle<S>): { from: S; via: S; to: S }[] {
  const { compound } = table
  if (compound === undefined) return []
  const byWorker = edgesOf(table).filter(({ move, from }) => {
    return from === compound.via && table.moves[move]!.by.includes('worker')
  })
  const targets = new Set(byWorker.map(({ to }) => to))
  return [...targets].map(to => ({ from: compound.from as S, via: compound.via as S, to }))
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

export function finalStates<S extends string>(table: Lifecycle<S>): S[] {
  return statesOf(table, 'final')
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
