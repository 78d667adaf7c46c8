/**
 * How what workers report is written: each sync by itself, or that of many together. Between them a server's workers
 * send many small batches, and what arrives while a statement is in flight goes with the next; so the more there are,
 * the larger the batches, and nobody waits for company.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { willPass } from '../../kernel/problem.ts'
import type { BeatOfTask, HeldTask, Refusal, SettledTask, StartedTask } from '../../protocol/tasks/sync.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { renewLeases } from '../../store/tasks/settle.ts'
import type { Context } from '../context.ts'
import { splitting } from '../split.ts'
import {
  inTurn,
  type Refused,
  refusal,
  reportSettled,
  reportStarts,
  type Speaker,
  type SpeakerOf,
  unfit,
} from './write-reports.ts'

export interface Reports {
  readonly settled: Report<SettledTask>
  readonly started: Report<StartedTask>
  readonly beats: Report<BeatOfTask>
}

type Report<Item> = (items: readonly Item[], speaker: Speaker) => Promise<Refusal[]>
type Write<Item> = (items: readonly Item[], speakerOf: SpeakerOf) => Promise<Refused[]>

export function directReports(context: Context): Reports {
  return reportsBy(context, write => async (items, speaker) => refusalsIn(await write(items, () => speaker)))
}

export function mergedReports(context: Context): Reports {
  return reportsBy(context, merging)
}

function reportsBy(context: Context, by: <Item extends HeldTask>(write: Write<Item>) => Report<Item>): Reports {
  return {
    settled: by((items, speakerOf) => reportSettled(context, items, speakerOf)),
    started: by((items, speakerOf) => reportStarts(context, items, speakerOf)),
    beats: by(items => reportBeats(context, items)),
  }
}

/** Two share the waiting for the disk; more would only make the batches smaller. */
const atOnce = 2
const mostItems = 2000

interface Ask<Item> {
  readonly items: readonly Item[]
  readonly speaker: Speaker
  answer(refused: Refusal[]): void
  fail(error: unknown): void
}

export function merging<Item extends HeldTask>(write: Write<Item>): Report<Item> {
  const waiting: Ask<Item>[] = []
  let inFlight = 0

  async function keepWriting(): Promise<void> {
    inFlight += 1
    while (waiting.length > 0) await answerAll(write, nextBatch(waiting))
    inFlight -= 1
  }

  return async (items, speaker) => {
    if (items.length === 0) return []
    return new Promise((answer, fail) => {
      waiting.push({ items, speaker, answer, fail })
      if (inFlight < atOnce) void keepWriting()
    })
  }
}

/** Whole asks only: at least one, and no more than make a statement of good size. */
function nextBatch<Item>(waiting: Ask<Item>[]): Ask<Item>[] {
  let size = 0
  const beyond = waiting.findIndex(({ items }, index) => {
    size += items.length
    return index > 0 && size > mostItems
  })
  return waiting.splice(0, beyond < 0 ? waiting.length : beyond)
}

/** What goes wrong for all may be one asker's doing: then each of them is written alone. */
async function answerAll<Item extends HeldTask>(write: Write<Item>, asks: readonly Ask<Item>[]): Promise<void> {
  const askerOf = new Map<HeldTask, Ask<Item>>(asks.flatMap(ask => ask.items.map(item => [item, ask] as const)))
  try {
    const refused = await write([...askerOf.keys()] as Item[], item => askerOf.get(item)!.speaker)
    for (const ask of asks) ask.answer(refusalsIn(refused.filter(({ item }) => askerOf.get(item) === ask)))
  } catch (error) {
    if (asks.length === 1 || willPass(error)) for (const ask of asks) ask.fail(error)
    else for (const ask of asks) await answerAll(write, [ask])
  }
}

function refusalsIn(refused: readonly Refused[]): Refusal[] {
  return refused.map(({ refusal }) => refusal)
}

/** Heartbeats: they renew leases and carry progress and checkpoints. They never wait for a task that somebody holds. */
export async function reportBeats({ sql, figures }: Context, items: readonly BeatOfTask[]): Promise<Refused[]> {
  const run = async (batch: readonly BeatOfTask[]) => {
    const { lost, passedOver } = await renewLeases(sql, batch)
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
    const looked = await renewLeases(sql, open)
    for (const id of looked.lost) lost.add(id)
    open = open.filter(({ id }) => looked.passedOver.has(id))
  }
  return { lost, passedOver: new Set(open.map(({ id }) => id)) }
}
