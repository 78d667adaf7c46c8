/** Runs each command on the engine and on the model. The answers must agree. */
import assert from 'node:assert/strict'
import { endGraces, expireTasks } from '../../src/babysitter/chores.ts'
import { rescue } from '../../src/babysitter/rescue.ts'
import {
  cancel,
  deadLetter,
  endGrace,
  expire,
  loseLease,
  revive,
  timeOut,
  type Verdict,
} from '../../src/kernel/decide.ts'
import { newId } from '../../src/kernel/id.ts'
import { mayMove } from '../../src/kernel/lifecycle.ts'
import { Problem } from '../../src/kernel/problem.ts'
import { type TaskMove, taskLifecycle } from '../../src/kernel/task.ts'
import { type Command, kinds, type Pick } from './commands.ts'
import { enqueue, factsOf, holderOf, isHeld, type ModelTask, obey, record, startedAt, takeKey } from './model.ts'
import { claim, report } from './worker-steps.ts'
import { setClock, type World } from './world.ts'

export async function step(world: World, command: Command): Promise<void> {
  switch (command.do) {
    case 'enqueue':
      return queue(world, command)
    case 'claim':
      return claim(world, command)
    case 'report':
      return report(world, command)
    case 'cancel': {
      const { mode } = command
      return control(
        world,
        command.pick,
        'cancel',
        task => cancel(factsOf(task), mode),
        id => world.engine.cancel(id, { mode }),
      )
    }
    case 'resume':
    case 'retry': {
      const { do: move } = command
      return control(
        world,
        command.pick,
        move,
        task => revive(factsOf(task), move, {}),
        id => world.engine[move](id),
      )
    }
    case 'dead-letter': {
      const reasons = { reasonCode: command.reasonCode, reason: 'by hand' }
      const decide = (task: ModelTask) => deadLetter(factsOf(task), reasons)
      return control(world, command.pick, 'deadLetter', decide, id => world.engine.deadLetter(id, reasons))
    }
    case 'redrive':
      return redrive(world, command)
    case 'pass':
      return setClock(world, world.model.clock + 1000 * command.seconds)
    case 'rescue':
      return rescueLost(world, command.sightedSeconds)
    case 'expire':
      return chore(world, expireTasks, 'expired', task =>
        task.endedAt === null && isPast(world, task.expireAt) ? expire(factsOf(task)) : undefined,
      )
    case 'end graces':
      return chore(world, endGraces, 'cancelled', task => {
        const isOver =
          isHeld(task) && task.cancelAt !== null && isPast(world, task.cancelAt + 1000 * task.settings.graceSeconds)
        return isOver ? endGrace(factsOf(task)) : undefined
      })
  }
}

type Of<Name extends Command['do']> = Extract<Command, { do: Name }>

const isPast = ({ model }: World, at: number | null) => at !== null && at <= model.clock

async function queue({ engine, model }: World, { items }: Of<'enqueue'>): Promise<void> {
  const made = items.map(({ kind, queue, priority, key, runInSeconds }, n) => ({
    ...kinds[kind]!,
    ...{ type: queue, priority, payload: { n } },
    ...(key !== undefined && { dedupeKey: key }),
    ...(runInSeconds !== undefined && { runInSeconds }),
  }))
  const answers = await engine.enqueueMany(made)
  const lanes = items.map(({ queue, priority }) => ({ queue, priority }))
  lanes.sort((a, b) => (a.queue === b.queue ? a.priority - b.priority : a.queue < b.queue ? -1 : 1))
  for (const lane of lanes) {
    const isKnown = model.lanes.some(known => known.queue === lane.queue && known.priority === lane.priority)
    if (!isKnown) model.lanes.push(lane)
  }
  for (const [n, item] of items.entries()) {
    const { retry, ...options } = kinds[item.kind]!
    const { id, state, was } = enqueue(model, answers[n]!.id, {
      ...item,
      options: { ...options, ...retry },
      payload: { n },
    })
    assert.deepEqual(answers[n], { id, state, deduplicated: was })
  }
}

/** Selects a task; if `fitting`, one that allows the move. A cancel prefers held tasks. */
function pickTask({ model }: World, { n, fitting }: Pick, move: TaskMove): string {
  const all = [...model.tasks.values()]
  const legal = fitting ? all.filter(task => mayMove(taskLifecycle, task.state, move)) : []
  const held = move === 'cancel' ? legal.filter(isHeld) : []
  const fit = held.length > 0 ? held : legal
  const among = fit.length > 0 ? fit : all
  return among[n % among.length]?.id ?? newId()
}

async function control(
  world: World,
  pick: Pick,
  move: TaskMove,
  decide: (task: ModelTask) => Verdict,
  ask: (id: string) => Promise<unknown>,
): Promise<void> {
  const id = pickTask(world, pick, move)
  const code = foretell(world, id, decide)
  const answer = await ask(id).then(() => 'done', codeOf)
  assert.equal(answer, code, `${move} ${id}`)
}

/** The result of an operator's request: 'done', or the code of the problem. */
function foretell(world: World, id: string, decide: (task: ModelTask) => Verdict): string {
  const { model } = world
  const code = verdictOn(world, id, decide)
  const task = model.tasks.get(id)
  if (code !== 'done' || task === undefined) return code
  const verdict = decide(task)
  if (verdict.ok && verdict.patch.opensRound) takeKey(model, task)
  obey(model, task, verdict, 'operator')
  return code
}

function verdictOn({ model }: World, id: string, decide: (task: ModelTask) => Verdict): string {
  const task = model.tasks.get(id)
  if (task === undefined) return 'TASK_NOT_FOUND'
  const verdict = decide(task)
  if (!verdict.ok) return 'MOVE_REFUSED'
  if (!verdict.patch.opensRound || task.key === undefined) return 'done'
  const holder = holderOf(model, task.queue, task.key)
  return holder === undefined || holder === task ? 'done' : 'DEDUPE_CONFLICT'
}

function codeOf(error: unknown): string {
  if (error instanceof Problem) return error.code
  throw error
}

async function redrive(world: World, { picks, dryRun, payload, rate }: Of<'redrive'>): Promise<void> {
  const { engine, model } = world
  const letters = [...model.tasks.values()].filter(({ state }) => state === 'dead_lettered').map(({ id }) => id)
  const ids = picks === 'all' ? letters.sort() : picks.map(pick => pickTask(world, pick, 'redrive'))
  const answer = await engine.redrive({
    ...(picks !== 'all' && { ids }),
    ...(dryRun && { dryRun }),
    ...(payload !== undefined && { payload }),
    ...(rate !== undefined && { ratePerSecond: rate }),
  })
  const redriven: string[] = []
  const refused: { id: string; code: string }[] = []
  const decide = (task: ModelTask) => revive(factsOf(task), 'redrive', {})
  for (const id of ids) {
    const runInSeconds = rate === undefined ? 0 : redriven.length / rate
    const code = dryRun ? dryVerdictOn(world, id, decide, redriven) : verdictOn(world, id, decide)
    if (code !== 'done') refused.push({ id, code })
    else redriven.push(id)
    if (code !== 'done' || dryRun) continue
    const task = model.tasks.get(id)!
    if (payload !== undefined) edit(world, task, payload)
    foretell(world, id, decide)
    task.runAt += 1000 * runInSeconds
  }
  const named = answer.refused.map(({ id, code }) => ({ id, code }))
  assert.deepEqual([answer.dryRun, answer.redriven, named], [dryRun, redriven, refused])
}

/** A dry run treats earlier letters as redriven: a repeated letter, or one whose key an earlier letter took, is refused. */
function dryVerdictOn(world: World, id: string, decide: (task: ModelTask) => Verdict, before: readonly string[]) {
  const code = verdictOn(world, id, decide)
  if (code !== 'done') return code
  if (before.includes(id)) return 'MOVE_REFUSED'
  const { queue, key } = world.model.tasks.get(id)!
  const isTaken = before.some(other => {
    const task = world.model.tasks.get(other)!
    return key !== undefined && task.queue === queue && task.key === key
  })
  return isTaken ? 'DEDUPE_CONFLICT' : code
}

/** A redrive with another payload. The edit is a separate event. */
function edit({ model }: World, task: ModelTask, payload: unknown): void {
  const event = { type: 'task.payload_edited', actor: 'operator', cause: 'redrive', payload: { before: task.payload } }
  record(task, task.state, { ts: model.clock, ...event })
  task.payload = payload
}

/** A babysitter that has been watching for this long. Losses from before that time are not charged. */
async function rescueLost(world: World, sightedSeconds: number): Promise<void> {
  const { engine, model } = world
  const blindSeconds = [0, 9, 18]
  const moments = sightedSeconds > 1e6 ? [0] : [...blindSeconds, 20 + sightedSeconds]
  let now = 0
  const rescueChore = rescue({ now: () => now, beginsBlind: moments.length > 1 })
  for (const at of moments) {
    now = at * 1000
    if (at === moments.at(-1)) break
    assert.deepEqual(await rescueChore.run(engine.context), { rescued: 0, isBlind: true })
  }
  const isLost = (task: ModelTask) => isPast(world, task.leaseUntil)
  // An attempt that exceeds its timeout is found within five seconds. The row shows when.
  const late = [...model.tasks.values()].filter(task => !isLost(task) && isLate(world, task, 0))
  const certain = new Set(late.filter(task => isLate(world, task, 5)))
  const seqs = new Map(late.map(({ id, seq }) => [id, seq]))
  const decide = async (task: ModelTask) => {
    if (isLost(task))
      return loseLease(factsOf(task), { charged: model.clock - task.leaseUntil! < sightedSeconds * 1000 })
    if (!late.includes(task)) return undefined
    const found = certain.has(task) || (await engine.task(task.id)).seq !== seqs.get(task.id)
    return found ? timeOut(factsOf(task), Math.random()) : undefined
  }
  await chore(world, rescueChore, 'rescued', decide)
}

function isLate(world: World, task: ModelTask, seconds: number): boolean {
  const { timeoutSeconds } = task.settings
  if (task.state !== 'running' || timeoutSeconds === null) return false
  const lateAt = startedAt(task)! + 1000 * timeoutSeconds
  return isPast(world, Math.max(lateAt, task.heardAt) + 1000 * seconds)
}

async function chore(
  { engine, model }: World,
  { run }: { run: typeof expireTasks.run },
  count: string,
  decide: (task: ModelTask) => Verdict | undefined | Promise<Verdict | undefined>,
): Promise<void> {
  const { [count]: moved, failed } = await run(engine.context)
  let foretold = 0
  for (const task of model.tasks.values()) {
    const verdict = await decide(task)
    if (verdict !== undefined && obey(model, task, verdict, 'babysitter')) foretold += 1
  }
  assert.deepEqual({ moved, failed }, { moved: foretold, failed: 0 })
}
