/** Jobs in TypeScript: stages are values, and later stages read the outputs of earlier ones with their types. */
import type { GateSpec, JobSpec, StageSpec } from '../../spec/job-spec.ts'
import type { TaskDefinition } from '../tasks/new-task.ts'
import { hasRef, type Ref, type Refs, refTo, toCel } from './refs.ts'

/** A stage of a job that is being defined. */
export interface Stage<Output = unknown> {
  readonly name: string
  /** The output of its only task, or a list with the outputs of all. */
  readonly output: Ref<Output>
  /** The state in which it ended. */
  readonly state: Ref<string>
  /** The approvals of its gate, with comments and data. */
  readonly approvals: Ref<readonly { readonly by: string; readonly comment?: string; readonly data?: unknown }[]>
}

type OwnFields = 'name' | 'task' | 'payload' | 'payloads' | 'forEach' | 'gives' | 'run' | 'inputs' | 'needs' | 'when'

/** Options of a stage, as in a job spec. */
export interface StageOptions extends Omit<StageSpec, OwnFields> {
  /**
   * The stages that must end first, besides those that it reads. Default: the stage before it. []: only those that it
   * reads.
   */
  readonly after?: readonly Pick<Stage, 'name' | 'state'>[]
  /** If this is false when the stage would open, the stage is skipped. */
  readonly when?: Ref<boolean>
}

/** Defines the stages of a job, in order. */
export interface JobBuilder<Input = unknown> {
  /** The input of the job. */
  readonly input: Ref<Input>
  /** A stage with one task. */
  stage<In, Out>(
    name: string,
    task: TaskDefinition<In, Out>,
    payload: Refs<NoInfer<In>>,
    options?: StageOptions,
  ): Stage<Out>
  /** A stage with one task per element of a list. */
  each<In, Out, Item>(
    name: string,
    task: TaskDefinition<In, Out>,
    list: Ref<readonly Item[]> | readonly Refs<Item>[],
    payload: (item: Ref<Item>) => Refs<NoInfer<In>>,
    options?: StageOptions,
  ): Stage<Out[]>
  /** A stage without tasks, whose output is computed. */
  value<Value>(name: string, value: Ref<Value>, options?: Pick<StageOptions, 'after' | 'when'>): Stage<Value>
  /** A stage without tasks, which waits for approval. */
  gate(name: string, gate?: GateSpec, options?: Pick<StageOptions, 'after' | 'when'>): Stage<null>
}

/** Makes the specs of a job from its input. */
export type JobDefinition<Input> = (...input: unknown extends Input ? [input?: unknown] : [input: Input]) => JobSpec

/** The definitions of the tasks of a spec that `defineJob` has made. Copies of the spec have them too. */
const tasksOfSpec = Symbol('tasks')

export function tasksOf(spec: unknown): readonly TaskDefinition[] {
  const isSpec = typeof spec === 'object' && spec !== null && tasksOfSpec in spec
  return isSpec ? (spec[tasksOfSpec] as readonly TaskDefinition[]) : []
}

/**
 * Defines a job. Payloads and conditions may read the job's input and the outputs of earlier stages; a stage begins when
 * the stages that it reads, and the one before it, have ended.
 *
 * @example
 * const thumbnails = defineJob('thumbnails', ({ input, stage, each }: JobBuilder<{ folder: string }>) => {
 *   const list = stage('list', listFiles, { folder: input.folder })
 *   const small = each('resize', resize, list.output.files, file => ({ file, width: 200 }))
 *   stage('publish', publish, { pictures: small.output })
 * })
 * await app.submit(thumbnails({ folder: 'inbox' }))
 */
export function defineJob<Input = unknown>(
  name: string,
  define: (builder: JobBuilder<Input>) => void,
  options: Omit<JobSpec, 'name' | 'input' | 'stages'> = {},
): JobDefinition<Input> {
  const stages: StageSpec[] = []
  const tasks: TaskDefinition[] = []
  define(builderOf(stages, tasks))
  const specOf = (input?: Input) => ({
    ...options,
    name,
    ...(input !== undefined && { input }),
    stages,
    [tasksOfSpec]: tasks,
  })
  return specOf as JobDefinition<Input>
}

type Source = Pick<StageSpec, 'task' | 'payload' | 'payloads' | 'forEach' | 'gives' | 'gate'>

function builderOf<Input>(stages: StageSpec[], tasks: TaskDefinition[]): JobBuilder<Input> {
  /** `read`: values that may read earlier stages. `isList`: its tasks come from a list with one element. */
  const add = <Output>(
    name: string,
    source: Source,
    read: unknown,
    { after, when, ...options }: StageOptions,
    isList = false,
  ): Stage<Output> => {
    const reads = new Set([...toCel(read).stages, ...toCel(when).stages])
    const before = after?.map(stage => stage.name) ?? stages.slice(-1).map(stage => stage.name)
    // Without `needs`, a stage follows the one before it.
    const isWritten = after !== undefined || reads.size > 0
    stages.push({
      name,
      ...(isWritten && { needs: [...new Set([...before, ...reads])] }),
      ...(when !== undefined && { when: toCel(when).text }),
      ...source,
      ...options,
    })
    return stageNamed(name, isList)
  }
  return {
    input: refTo('input'),
    stage(name, task, payload, options = {}) {
      tasks.push(task)
      if (!hasRef(payload)) return add(name, { task: task.type, payload: payload ?? null }, null, options)
      return add(name, { task: task.type, forEach: `[${toCel(payload).text}]` }, payload, options, true)
    },
    each(name, task, list, payload, options = {}) {
      tasks.push(task)
      const payloads = Array.isArray(list) ? list.map(item => payload(item)) : undefined
      if (payloads !== undefined && !hasRef(payloads)) return add(name, { task: task.type, payloads }, null, options)
      const item = 'item'
      const one = payload(refTo(item))
      const read = payloads ?? [list, one]
      const forEach =
        payloads === undefined ? `${toCel(list).text}.map(${item}, ${toCel(one).text})` : toCel(payloads).text
      return add(name, { task: task.type, forEach }, read, options)
    },
    value: (name, value, options = {}) => add(name, { gives: toCel(value).text }, value, options),
    gate: (name, gate, options = {}) => add(name, { gate: gate ?? true }, null, options),
  }
}

function stageNamed<Output>(name: string, isList: boolean): Stage<Output> {
  const { output, state, approvals } = refTo(`stages[${JSON.stringify(name)}]`, [name]) as unknown as {
    readonly output: Ref<Output> & { readonly 0: Ref<Output> }
  } & Pick<Stage, 'state' | 'approvals'>
  return { name, output: isList ? output[0] : output, state, approvals }
}
