import type { StageFacts } from '../../kernel/advance.ts'
import {
  evaluateForEach,
  evaluateGives,
  evaluateWhen,
  mostSteps,
  type Scope,
  stagesNamedIn,
} from '../../spec/conditions.ts'
import { Meter, OutOfSteps } from '../../spec/meter.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { readOutputs } from '../../store/jobs/errands.ts'
import { readJobInput, type StageRow } from '../../store/jobs/jobs.ts'
import { type ConditionBudget, stepsPerJob } from './condition-budget.ts'
import type { StagePatch } from './job-changes.ts'
import type { LockedJob } from './locked-job.ts'

/** Maximum size of all outputs that one stage's conditions read. They are in memory at the same time. */
const maxOutputBytes = 16 * 2 ** 20
/** Reading and parsing this many bytes takes about as long as one step. */
const bytesPerStep = 16
/** Conditions with fewer steps are not counted. Most conditions are this cheap, and counting writes to the job. */
const uncountedSteps = 1000

/**
 * Evaluates a stage's condition and list when the stage would open. An error fails the stage. Evaluation that exceeds
 * the steps left in this transaction is postponed.
 */
export async function evaluateConditions(
  tx: Sql,
  locked: LockedJob,
  stage: StageRow,
  budget: ConditionBudget,
): Promise<void> {
  const { remaining: stepsLeft } = budget
  if (stepsLeft === 0) return locked.postponeConditions(stage)
  const { scope, bytes } = await readScope(tx, locked, stage)
  budget.spend(bytes / bytesPerStep)
  if (scope === undefined)
    return failStage(locked, stage, `the condition reads more than ${maxOutputBytes / 2 ** 20} MiB of outputs`)
  const { conditionSteps } = locked.job
  const most = Math.min(mostSteps, Math.max(0, stepsPerJob - conditionSteps))
  const meter = new Meter(Math.min(stepsLeft, most))
  let isPostponed = false
  try {
    locked.setStage(stage, evaluate(stage, scope, meter))
  } catch (error) {
    const isOut = (error as Error).cause instanceof OutOfSteps
    isPostponed = isOut && stepsLeft < most
    if (isPostponed) return locked.postponeConditions(stage)
    failStage(locked, stage, isOut && most < mostSteps ? outOfBudget : (error as Error).message)
  } finally {
    const steps = meter.total - Math.max(0, meter.left)
    budget.spend(steps)
    // A postponed evaluation is repeated in a turn and counted there.
    if (steps > uncountedSteps && !isPostponed) locked.setJob({ conditionSteps: conditionSteps + Math.round(steps) })
  }
}

const outOfBudget = `the conditions of this job have used up their budget of ${stepsPerJob.toLocaleString('en')} steps`

function failStage(locked: LockedJob, stage: StageRow, message: string): void {
  locked.setStage(stage, { opening: 'error', error: { message } })
}

/** Evaluates a stage's condition and list. */
function evaluate({ plan, total }: StageRow, scope: Scope, meter: Meter): StagePatch {
  const { when, forEach, gives = null } = plan
  if (when !== null && !evaluateWhen(when, scope, meter)) return { opening: 'no' }
  if (gives !== null) return { opening: 'yes', fan: [evaluateGives(gives, scope, meter)], fanned: 1 }
  if (forEach === null) return { opening: 'yes' }
  const list = evaluateForEach(forEach, scope, meter)
  return { opening: 'yes', fan: list, fanned: 0, unfanned: list.length, total: total + list.length }
}

/**
 * Reads everything a condition can see: the job's input, and the states, outputs and approvals of the stages that it
 * names. `scope` is missing if the outputs are too large.
 */
async function readScope(tx: Sql, locked: LockedJob, { plan }: StageRow): Promise<{ scope?: Scope; bytes: number }> {
  await locked.readMissing(tx, 'all')
  const texts = [plan.when, plan.forEach, plan.gives ?? null].filter(text => text !== null)
  const names = new Set(texts.flatMap(stagesNamedIn))
  const named = locked.stages.filter(({ kind, name }) => kind === 'work' && names.has(name))
  const valueStages = named.filter(({ plan }) => plan.gives !== undefined)
  // A value may have been set earlier in this transaction.
  if (valueStages.length > 0) await locked.write(tx)
  const ids = { tasksOf: named.map(({ id }) => id), valuesOf: valueStages.map(({ id }) => id) }
  const { outputs, values, bytes } = await readOutputs(tx, ids, maxOutputBytes)
  if (outputs === null || values === null) return { bytes: 0 }
  const stages = Object.fromEntries(
    named.map(stage => {
      const output = stage.plan.gives === undefined ? outputInScope(stage, outputs) : (values[stage.id] ?? null)
      return [stage.name, stageInScope(stage, output)]
    }),
  )
  const { input, bytes: inputBytes } = await readInput(tx, locked, texts)
  return { scope: { input, stages }, bytes: bytes + inputBytes }
}

const inputs = new WeakMap<LockedJob, unknown>()

/** Reads the job's input, which may be large: once per transaction, and only if an expression names it. */
async function readInput(
  tx: Sql,
  locked: LockedJob,
  texts: readonly string[],
): Promise<{ input: unknown; bytes: number }> {
  if (!texts.some(text => /\binput\b/.test(text))) return { input: null, bytes: 0 }
  if (inputs.has(locked)) return { input: inputs.get(locked), bytes: 0 }
  const read = await readJobInput(tx, locked.job.id)
  inputs.set(locked, read.input)
  return read
}

function outputInScope({ id, plan }: StageRow, outputs: Readonly<Record<string, unknown[]>>): unknown {
  const mine = outputs[id] ?? []
  return plan.single ? (mine[0] ?? null) : mine
}

function stageInScope(stage: StageFacts & Pick<StageRow, 'given'>, output: unknown) {
  const { state, total, good, bad, given: approvals } = stage
  return { state, output, total, good, bad, approvals }
}
