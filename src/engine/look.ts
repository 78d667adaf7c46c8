import type { StageFacts } from '../kernel/advance.ts'
import { evaluateForEach, evaluateGives, evaluateWhen, stagesNamedIn } from '../spec/conditions.ts'
import { outputsOf, valuesOf } from '../store/errands.ts'
import { inputOf, type StageRow } from '../store/jobs.ts'
import type { Sql } from '../store/sql.ts'
import type { JobBook } from './job-book.ts'

/** Looks at a stage's condition and list, at the moment it would open. What goes wrong here fails the stage. */
export async function lookAt(tx: Sql, book: JobBook, stage: StageRow): Promise<void> {
  const { when, forEach, gives = null } = stage.plan
  try {
    const seen = await visible(tx, book, [when, forEach, gives])
    if (when !== null && !evaluateWhen(when, seen)) return book.setStage(stage, { opening: 'no' })
    if (gives !== null) return book.setStage(stage, { opening: 'yes', fan: [evaluateGives(gives, seen)], fanned: 1 })
    if (forEach === null) return book.setStage(stage, { opening: 'yes' })
    const list = evaluateForEach(forEach, seen)
    book.setStage(stage, {
      opening: 'yes',
      fan: list,
      fanned: 0,
      unfanned: list.length,
      total: stage.total + list.length,
    })
  } catch (error) {
    book.setStage(stage, { opening: 'error', error: { message: (error as Error).message } })
  }
}

/** What a condition can see: the job's input, and of the stages that it names their states, outputs and approvals. */
async function visible(tx: Sql, book: JobBook, texts: readonly (string | null)[]) {
  await book.readRest(tx, 'all')
  const names = new Set(texts.flatMap(text => (text === null ? [] : stagesNamedIn(text))))
  const named = book.stages.filter(({ kind, name }) => kind === 'work' && names.has(name))
  const outputs = await outputsOf(
    tx,
    named.map(({ id }) => id),
  )
  const givers = named.filter(({ plan }) => plan.gives !== undefined)
  // One of them may have given it just now.
  if (givers.length > 0) await book.write(tx)
  const given = await valuesOf(
    tx,
    givers.map(({ id }) => id),
  )
  const stages = Object.fromEntries(
    named.map(stage => {
      const output = stage.plan.gives === undefined ? outputOf(stage, outputs) : (given.get(stage.id) ?? null)
      return [stage.name, seenStage(stage, output)]
    }),
  )
  return { input: await inputOf(tx, book.job.id), stages }
}

function outputOf({ id, plan }: StageRow, outputs: ReadonlyMap<string, unknown[]>): unknown {
  const mine = outputs.get(id) ?? []
  return plan.single ? (mine[0] ?? null) : mine
}

function seenStage(stage: StageFacts & Pick<StageRow, 'given'>, output: unknown) {
  const { state, total, good, bad, given: approvals } = stage
  return { state, output, total, good, bad, approvals }
}
