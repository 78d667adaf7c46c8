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
import { type Allowance, stepsPerJob } from './condition-budget.ts'
import type { StagePatch } from './job-patch.ts'
import type { JobBook } from './locked-job.ts'

/** The outputs that the conditions of one stage look at may have this size together. They are in memory at once. */
const mostBytesSeen = 16 * 2 ** 20
/** Reading and parsing this many bytes takes about as long as a step. */
const bytesPerStep = 16
/** A condition that takes fewer steps than this is not counted: most are so, and counting writes to the job. */
const uncountedSteps = 1000

/**
 * Looks at a stage's condition and list, at the moment it would open. What goes wrong here fails the stage. What takes
 * more steps than this transaction may is postponed.
 */
export async function lookAt(tx: Sql, book: JobBook, stage: StageRow, allowance: Allowance): Promise<void> {
  const { room } = allowance
  if (room === 0) return book.postpone(stage)
  const { scope, bytes } = await visible(tx, book, stage)
  allowance.spend(bytes / bytesPerStep)
  if (scope === undefined) return fail(book, stage, `it looks at outputs of more than ${mostBytesSeen / 2 ** 20} MiB`)
  const { conditionSteps } = book.job
  const most = Math.min(mostSteps, Math.max(0, stepsPerJob - conditionSteps))
  const meter = new Meter(Math.min(room, most))
  let isPostponed = false
  try {
    book.setStage(stage, opened(stage, scope, meter))
  } catch (error) {
    const isOut = (error as Error).cause instanceof OutOfSteps
    isPostponed = isOut && room < most
    if (isPostponed) return book.postpone(stage)
    fail(book, stage, isOut && most < mostSteps ? outOfBudget : (error as Error).message)
  } finally {
    const steps = meter.total - Math.max(0, meter.left)
    allowance.spend(steps)
    // An attempt that is made again in a turn is counted then.
    if (steps > uncountedSteps && !isPostponed) book.setJob({ conditionSteps: conditionSteps + Math.round(steps) })
  }
}

const outOfBudget = `the conditions of this job have used up their budget of ${stepsPerJob.toLocaleString('en')} steps`

function fail(book: JobBook, stage: StageRow, message: string): void {
  book.setStage(stage, { opening: 'error', error: { message } })
}

/** Evaluates a stage's condition and list. */
function opened({ plan, total }: StageRow, scope: Scope, meter: Meter): StagePatch {
  const { when, forEach, gives = null } = plan
  if (when !== null && !evaluateWhen(when, scope, meter)) return { opening: 'no' }
  if (gives !== null) return { opening: 'yes', fan: [evaluateGives(gives, scope, meter)], fanned: 1 }
  if (forEach === null) return { opening: 'yes' }
  const list = evaluateForEach(forEach, scope, meter)
  return { opening: 'yes', fan: list, fanned: 0, unfanned: list.length, total: total + list.length }
}

/**
 * Reads all that a condition can see: the job's input, and the states, outputs and approvals of the stages it names.
 * Undefined: the outputs are too large to be read.
 */
async function visible(tx: Sql, book: JobBook, { plan }: StageRow): Promise<{ scope?: Scope; bytes: number }> {
  await book.readRest(tx, 'all')
  const texts = [plan.when, plan.forEach, plan.gives ?? null].filter(text => text !== null)
  const names = new Set(texts.flatMap(stagesNamedIn))
  const named = book.stages.filter(({ kind, name }) => kind === 'work' && names.has(name))
  const givers = named.filter(({ plan }) => plan.gives !== undefined)
  // One of them may have given it just now.
  if (givers.length > 0) await book.write(tx)
  const ids = { tasksOf: named.map(({ id }) => id), valuesOf: givers.map(({ id }) => id) }
  const { outputs, values, bytes } = await readOutputs(tx, ids, mostBytesSeen)
  if (outputs === null || values === null) return { bytes: 0 }
  const stages = Object.fromEntries(
    named.map(stage => {
      const output = stage.plan.gives === undefined ? outputOf(stage, outputs) : (values[stage.id] ?? null)
      return [stage.name, seenStage(stage, output)]
    }),
  )
  const { input, bytes: inputBytes } = await inputFor(tx, book, texts)
  return { scope: { input, stages }, bytes: bytes + inputBytes }
}

const inputs = new WeakMap<JobBook, unknown>()

/** The job's input, which may be large: it is read once in a transaction, and only if an expression names it. */
async function inputFor(tx: Sql, book: JobBook, texts: readonly string[]): Promise<{ input: unknown; bytes: number }> {
  if (!texts.some(text => /\binput\b/.test(text))) return { input: null, bytes: 0 }
  if (inputs.has(book)) return { input: inputs.get(book), bytes: 0 }
  const read = await readJobInput(tx, book.job.id)
  inputs.set(book, read.input)
  return read
}

function outputOf({ id, plan }: StageRow, outputs: Readonly<Record<string, unknown[]>>): unknown {
  const mine = outputs[id] ?? []
  return plan.single ? (mine[0] ?? null) : mine
}

function seenStage(stage: StageFacts & Pick<StageRow, 'given'>, output: unknown) {
  const { state, total, good, bad, given: approvals } = stage
  return { state, output, total, good, bad, approvals }
}
