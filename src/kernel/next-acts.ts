/**
 * Finds the acts of a job one by one. The caller carries out each act before it asks for the next. After an act, only
 * the stages that it may affect are checked again, so a job of 10,000 stages needs about as many checks, and not the
 * square of that.
 */
import { type Act, type JobFacts, jobAct, type StageFacts, stageAct } from './advance.ts'
import { jobLifecycle } from './job.ts'
import { isFinal } from './lifecycle.ts'
import { stageLifecycle } from './stage.ts'

export class NextActs {
  /** The number of stages that it knows. If the job gets more stages, create a new instance. */
  readonly size: number
  readonly #job: JobFacts
  readonly #stages: readonly StageFacts[]
  readonly #byName: ReadonlyMap<string, StageFacts>
  readonly #places: ReadonlyMap<StageFacts, number>
  /** The indexes of the stages that need this one. */
  readonly #dependents: readonly number[][]
  /** How many of its needs have not ended. */
  readonly #openNeeds: number[]
  readonly #hasEnded: boolean[]
  readonly #isDue: boolean[]
  /** No stage before this index is due. */
  #from = 0
  #jobWas: Pick<JobFacts, 'state' | 'endsAs'>

  /** The facts are read again on each call, so apply every change to these same objects. */
  constructor(job: JobFacts, stages: readonly StageFacts[]) {
    this.size = stages.length
    this.#job = job
    this.#jobWas = { state: job.state, endsAs: job.endsAs }
    // A copy, so that indexes stay valid when stages are added.
    this.#stages = [...stages]
    this.#byName = new Map(stages.filter(({ kind }) => kind === 'work').map(stage => [stage.name, stage]))
    this.#places = new Map(stages.map((stage, place) => [stage, place]))
    this.#hasEnded = stages.map(stage => hasEnded(stage))
    this.#isDue = stages.map(() => true)
    this.#dependents = stages.map(() => [])
    this.#openNeeds = stages.map((stage, place) => this.#watchNeeds(stage, place))
  }

  /** The next act of a stage, in stage order. `changed`: the stages that changed since the last act. */
  ofStages(changed: Iterable<StageFacts> = []): Act | undefined {
    if (isFinal(jobLifecycle, this.#job.state)) return undefined
    this.#note(changed)
    for (let place = this.#from; place < this.size; place++) {
      if (!this.#isDue[place]) continue
      const act = stageAct(this.#job, this.#stages[place]!, this.#stages, this.#byName)
      if (act === undefined) this.#isDue[place] = false
      else {
        this.#from = place
        return act
      }
    }
    this.#from = this.size
    return undefined
  }

  /** The next act of the job itself, when no stage has anything to do. */
  ofJob(): Act | undefined {
    return isFinal(jobLifecycle, this.#job.state) ? undefined : jobAct(this.#job, this.#stages, this.#byName)
  }

  #watchNeeds({ plan }: StageFacts, place: number): number {
    let open = 0
    for (const name of plan.needs) {
      const need = this.#byName.get(name)
      if (need === undefined) continue
      const at = this.#places.get(need)!
      this.#dependents[at]!.push(place)
      if (!this.#hasEnded[at]) open += 1
    }
    return open
  }

  #note(changed: Iterable<StageFacts>): void {
    const { state, endsAs } = this.#job
    if (state !== this.#jobWas.state || endsAs !== this.#jobWas.endsAs) {
      this.#jobWas = { state, endsAs }
      this.#isDue.fill(true)
      this.#from = 0
    }
    for (const stage of changed) {
      const place = this.#places.get(stage)
      if (place === undefined) continue
      this.#markDue(place)
      if (!this.#hasEnded[place] && hasEnded(stage)) this.#noteEnded(place)
    }
  }

  /** Checks the dependent stages that have no other open need. Stages with join `any` are always checked. */
  #noteEnded(place: number): void {
    this.#hasEnded[place] = true
    for (const dependent of this.#dependents[place]!) {
      this.#openNeeds[dependent]! -= 1
      if (this.#openNeeds[dependent] === 0 || this.#stages[dependent]!.plan.join === 'any') this.#markDue(dependent)
    }
    if (this.#stages[place]!.kind !== 'undo') return
    const next = this.#stages.findIndex(({ kind }, other) => kind === 'undo' && !this.#hasEnded[other])
    if (next !== -1) this.#markDue(next)
  }

  #markDue(place: number): void {
    this.#isDue[place] = true
    this.#from = Math.min(this.#from, place)
  }
}

const hasEnded = ({ state }: StageFacts) => isFinal(stageLifecycle, state)

/** The dependencies between the stages of a job, by stage name. */
export interface NeedsOfJob {
  /** The stages that depend on this one. */
  neededBy(name: string): readonly string[]
  /** A stage that must end before this one can open, if one is known. */
  waitsFor(name: string): string | undefined
}

/**
 * Whether the next act of a job can be decided from these stages alone. The job was at rest, and only the counts of
 * these stages have changed since then. So any other stage has something to do only if it depends on a stage that has
 * ended. The job itself has something to do only if none of these stages is open, one of them went bad, or its end is
 * already decided.
 */
export function canDecide(job: JobFacts, stages: readonly StageFacts[], { neededBy, waitsFor }: NeedsOfJob): boolean {
  if (job.endsAs !== null || (job.state !== 'pending' && job.state !== 'running')) return false
  const byName = new Map(stages.map(stage => [stage.name, stage]))
  const knows = (others: readonly string[]) => others.every(name => byName.has(name))
  const isWaiting = (name: string) => {
    const need = byName.get(waitsFor(name) ?? '')
    return need !== undefined && !isFinal(stageLifecycle, need.state)
  }
  const isSettled = ({ kind, name, state, plan }: StageFacts) => {
    if (kind === 'undo' || stageLifecycle.states[state].outcome === 'bad') return false
    if (isFinal(stageLifecycle, state)) return neededBy(name).every(user => byName.has(user) || isWaiting(user))
    return state !== 'created' || knows(plan.needs)
  }
  return stages.every(isSettled) && stages.some(({ state }) => !isFinal(stageLifecycle, state))
}
