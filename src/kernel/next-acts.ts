/**
 * Finds the acts of a job one by one. The caller does each before it asks for the next. After an act only the stages that it may
 * have given something to do are looked at again, so a job of 10,000 stages takes about as many looks and not the
 * square of that.
 */
import { type Act, type JobFacts, jobAct, type StageFacts, stageAct } from './advance.ts'
import { jobLifecycle } from './job.ts'
import { isFinal } from './lifecycle.ts'
import { stageLifecycle } from './stage.ts'

export class NextActs {
  /** How many stages it knows of. If the job gets more, it needs another agenda. */
  readonly size: number
  readonly #job: JobFacts
  readonly #stages: readonly StageFacts[]
  readonly #byName: ReadonlyMap<string, StageFacts>
  readonly #places: ReadonlyMap<StageFacts, number>
  /** The places of the stages that need this one. */
  readonly #users: readonly number[][]
  /** How many of its needs have not ended. */
  readonly #openNeeds: number[]
  readonly #hasEnded: boolean[]
  readonly #isDue: boolean[]
  /** No stage before this place is due. */
  #from = 0
  #jobWas: Pick<JobFacts, 'state' | 'endsAs'>

  /** The facts are read again with each question: what is done to the job is done to these objects. */
  constructor(job: JobFacts, stages: readonly StageFacts[]) {
    this.size = stages.length
    this.#job = job
    this.#jobWas = { state: job.state, endsAs: job.endsAs }
    // A copy, so that places stay what they are when stages are added.
    this.#stages = [...stages]
    this.#byName = new Map(stages.filter(({ kind }) => kind === 'work').map(stage => [stage.name, stage]))
    this.#places = new Map(stages.map((stage, place) => [stage, place]))
    this.#hasEnded = stages.map(stage => hasEnded(stage))
    this.#isDue = stages.map(() => true)
    this.#users = stages.map(() => [])
    this.#openNeeds = stages.map((stage, place) => this.#watchNeeds(stage, place))
  }

  /** The next act of a stage, the first stage first. `changed`: those that something was done to since the last act. */
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
      this.#users[at]!.push(place)
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
      this.#lookAt(place)
      if (!this.#hasEnded[place] && hasEnded(stage)) this.#hasNowEnded(place)
    }
  }

  /** Looks again at the stages that need it and have no other open need. One with join `any` is always looked at again. */
  #hasNowEnded(place: number): void {
    this.#hasEnded[place] = true
    for (const user of this.#users[place]!) {
      this.#openNeeds[user]! -= 1
      if (this.#openNeeds[user] === 0 || this.#stages[user]!.plan.join === 'any') this.#lookAt(user)
    }
    if (this.#stages[place]!.kind !== 'undo') return
    const next = this.#stages.findIndex(({ kind }, other) => kind === 'undo' && !this.#hasEnded[other])
    if (next !== -1) this.#lookAt(next)
  }

  #lookAt(place: number): void {
    this.#isDue[place] = true
    this.#from = Math.min(this.#from, place)
  }
}

const hasEnded = ({ state }: StageFacts) => isFinal(stageLifecycle, state)
