/** Heartbeats: they renew leases and carry progress and checkpoints. They never wait for a task that somebody holds. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { BeatOfTask } from '../protocol/sync.ts'
import { beatTasks } from '../store/settle.ts'
import type { Sql } from '../store/sql.ts'
import type { Context } from './context.ts'
import { inTurn, type Refused, refusal, unfit } from './report.ts'
import { splitting } from './split.ts'

export async function reportBeats({ sql, figures }: Context, items: readonly BeatOfTask[]): Promise<Refused[]> {
  const run = async (batch: readonly BeatOfTask[]) => {
    const { lost, passedOver } = await beatTasks(sql, batch)
    figures.leaseRenewals += batch.length - lost.size - passedOver.size
    const again = await beatAgain(
      sql,
      batch.filter(item => passedOver.has(item.id)),
    )
    return batch.flatMap(item => {
      if (lost.has(item.id) || again.lost.has(item.id)) return [{ item, refusal: refusal(item, 'LEASE_LOST') }]
      return again.passedOver.has(item.id) ? [{ item, refusal: refusal(item, 'TASK_BUSY') }] : []
    })
  }
  return inTurn(items, turn => splitting(turn, run, unfit))
}

const lookAgainMs = [10, 20, 40, 80]

/** A beat that was passed over has renewed nothing, and must not be taken for one that has: it is tried again. */
async function beatAgain(sql: Sql, items: readonly BeatOfTask[]) {
  const lost = new Set<string>()
  let open = items
  for (const ms of lookAgainMs) {
    if (open.length === 0) break
    await sleep(ms)
    const looked = await beatTasks(sql, open)
    for (const id of looked.lost) lost.add(id)
    open = open.filter(({ id }) => looked.passedOver.has(id))
  }
  return { lost, passedOver: new Set(open.map(({ id }) => id)) }
}
