/**
 * Requests in the name of a lease. Its clients say who they are; the server binds that name to the epoch of the claim,
 * so that whoever lost a job is refused. Two of one name are told apart by the epoch only, if they name it.
 */
import { Problem } from '../../kernel/problem.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import type { HeldTask } from '../../protocol/tasks/sync.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import type { AskersEngine } from '../askers-engine.ts'
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
  const { engine, params } = ask
  const task = await engine.heldTask(params.id!)
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
export async function say({ engine }: Ask, worker: string, part: Parameters<AskersEngine['report']>[1]): Promise<void> {
  const { refused } = await engine.report(worker, part)
  for (const { code, message } of refused) throw new Problem(code, { told: message })
}
