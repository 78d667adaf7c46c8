/**
 * Requests in the name of a lease. Its clients say who they are; the server binds that name to the epoch of the claim,
 * so that whoever lost a job is refused. Two of one name are told apart by the epoch only, if they name it.
 */
import { Problem } from '../../kernel/problem.ts'
import { may, type Role, roles } from '../../kernel/role.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import type { HeldTask, SyncRequest } from '../../protocol/sync.ts'
import type { TaskView } from '../../protocol/tasks.ts'
import { type Answer, type Ask, good } from '../dialect.ts'
import { jobOf } from './job.ts'
import { isHeard, type Request, stateOf } from './transitions.ts'

export interface Holder {
  readonly worker: string
  /** That of the claim: then nobody else speaks for it, not even another of the same name. */
  readonly epoch?: number
}

/**
 * Does what the holder asks for, and answers with the job. The engine has the fence; here is only asked whether a job
 * that is held would hear it, for under one epoch a job that is running never becomes assigned again.
 */
export async function asHolder(
  ask: Ask,
  request: Request,
  holder: Holder,
  act: (held: HeldTask) => Promise<unknown>,
): Promise<Answer> {
  const { engine, params, asker } = ask
  if (asker.queues !== null) demandQueues(asker.queues, await engine.queuesOf([params.id]))
  const task = await engine.task(params.id!)
  const epoch = epochOf(task, holder)
  const isAgain = request === 'start' && task.state === 'running'
  const isOwn = epoch === task.epoch && isHeld(task)
  if (isOwn && !isAgain && !isHeard(request, stateOf(task.state))) throw refused(task, request)
  try {
    if (epoch === undefined) throw new Problem('LEASE_LOST')
    await act({ id: task.id, epoch })
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'LEASE_LOST') throw error
    throw await whyNot(ask, request, holder)
  }
  return good(jobOf(await engine.task(task.id)))
}

/** Undefined: it is another's. An earlier epoch may be of a report whose answer was lost; the engine knows. */
function epochOf(task: TaskView, { worker, epoch = task.epoch }: Holder): number | undefined {
  return epoch === task.epoch && task.owner !== worker ? undefined : epoch
}

const isHeld = ({ state }: TaskView) => taskLifecycle.states[state].kind === 'held'

/** From whom the job was taken has lost its lease; who gave it up by itself, or never could have it, asks in vain. */
async function whyNot({ engine, params }: Ask, request: Request, { worker, epoch }: Holder): Promise<Problem> {
  const task = await engine.task(params.id!)
  const last = (await engine.attempts(task.id)).at(-1)
  const isOwn = last?.worker === worker && (epoch === undefined || epoch === last.epoch)
  const wasEnded = isOwn && last.cause?.startsWith('reported_') === true
  if (last === undefined || wasEnded) return refused(task, request)
  return new Problem('LEASE_LOST', { id: task.id, state: task.state })
}

function refused({ id, state }: TaskView, move: Request): Problem {
  return new Problem('MOVE_REFUSED', { id, state, move })
}

/** One part of the worker protocol; what it refuses is thrown. */
export async function say(ask: Ask, worker: string, part: Omit<SyncRequest, 'worker'>): Promise<void> {
  const { refused } = await ask.engine.sync({ ...part, worker })
  for (const { code, message } of refused) throw new Problem(code, { told: message })
}

export function demandQueues(allowed: readonly string[] | null, named: readonly string[]): void {
  const beyond = allowed === null ? [] : named.filter(queue => !allowed.includes(queue))
  if (beyond.length > 0) throw new Problem('KEY_REFUSED', { queues: beyond, may: allowed })
}

/** What is not asked for in the name of a lease, an operator must ask for. */
export function demandOperator({ roles: held }: Ask['asker']): void {
  if (may(held, 'operate')) return
  const able = (Object.keys(roles) as Role[]).filter(other => may(other, 'operate'))
  throw new Problem('KEY_REFUSED', { role: held.join(', '), lacks: 'operate', able })
}
