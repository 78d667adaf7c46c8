/** Of a stage whose inputs are found once more: which of them its tasks have been given already. */
import type { Datum } from '../files/inputs.ts'
import type { DatumInput } from '../kernel/datum.ts'
import { inputsOfTasks } from '../store/listings.ts'
import type { Sql } from '../store/sql.ts'

/** Datums that no task of the stage has. Two are the same if all their inputs are, by name and place. */
export async function unlisted(sql: Sql, stageId: string, datums: readonly Datum[]): Promise<Datum[]> {
  const known = await inputsOfTasks(sql, stageId, telling(datums))
  const tasks = new Set(known.map(keyOf))
  return datums.filter(({ inputs }) => !tasks.has(keyOf(inputs)))
}

const keyOf = (inputs: readonly DatumInput[]) => JSON.stringify(inputs.map(({ name, uri }) => [name, uri]))

/** One input of each datum to look it up by: the one that fewest share, for all tasks may have been given some file. */
function telling(datums: readonly Datum[]): string[] {
  const shared = new Map<string, number>()
  for (const { uri } of datums.flatMap(({ inputs }) => inputs)) shared.set(uri, (shared.get(uri) ?? 0) + 1)
  const told = datums.flatMap(({ inputs }) => {
    const [first, ...rest] = inputs.map(({ uri }) => uri)
    if (first === undefined) return []
    return [rest.reduce((best, uri) => (shared.get(uri)! < shared.get(best)! ? uri : best), first)]
  })
  return [...new Set(told)]
}
